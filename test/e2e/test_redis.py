# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis under load moves; its clients do not notice more than a pause."""

import pytest

from clients import Client
from pair import LAN_ADDRESS, other, wait_for


def fill(pair, host, name, megabytes):
    """Load incompressible data into the Redis of a container."""
    if megabytes:
        script = ("for i=1,tonumber(ARGV[1])*16 do local t={} for j=1,4096 do "
                  "t[j]=struct.pack('d',math.random()*1e18) end "
                  "redis.call('set','key'..i,table.concat(t)) end return redis.call('dbsize')")
        pair.bed.host(host).docker("exec", name, "redis-cli", "eval", script, "0", str(megabytes * 2))


def digest(pair, host, name):
    """Redis' own digest over all data but the counters that the client changes."""
    return pair.bed.host(host).docker("exec", name, "redis-cli", "--raw", "debug", "digest-value",
                                      *(f"key{i}" for i in range(1, 33)))


def start(pair, host="a", megabytes=0):
    """A Redis of that size with its image's own user."""
    pair.bed.image("redis")
    pair.run(host, "redis", "redis")
    wait_for(lambda: "PONG" in pair.bed.host(host).run(
        ["docker", "exec", "redis", "redis-cli", "ping"], check=False).stdout, "redis answers")
    fill(pair, host, "redis", megabytes)


def check_moved(pair, source):
    """It runs there and is gone here."""
    assert pair.is_running(other(source), "redis")
    assert not pair.exists(source, "redis")
    assert pair.remains(source) == "" and pair.remains(other(source)) == ""


@pytest.mark.parametrize("connections,depth", [(1, 1), (8, 16)])
def test_counter_goes_on(pair, connections, depth):
    """INCR all the time: connection survives, every reply is the previous plus one, data complete."""
    start(pair, megabytes=20)
    before = digest(pair, "a", "redis")
    client = Client(pair, "count", LAN_ADDRESS, connections, depth)
    report = pair.move("a", "redis")
    seen = client.finish()
    assert report["result"] == "ok"
    assert seen["breaks"] == 0 and seen["wrong"] == 0 and seen["operations"] > 100
    assert digest(pair, "b", "redis") == before
    check_moved(pair, "a")


def test_there_and_back_twice(pair):
    """A to B to A, twice, on one connection."""
    start(pair)
    client = Client(pair, "count", LAN_ADDRESS)
    for source in ("a", "b", "a", "b"):
        pair.move(source, "redis")
        check_moved(pair, source)
    seen = client.finish()
    assert seen["breaks"] == 0 and seen["wrong"] == 0
