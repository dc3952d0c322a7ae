# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis under load moves; its clients do not notice more than a pause."""

import pytest

from clients import Client
from pair import LAN_ADDRESS, wait_for
from steps import check_moved, digest, record_gap, start_redis

QUICK_MB, FULL_MB = 60, 300
IDLE_SECONDS = 60


def size(megabytes):
    """Parameter of a test that runs with the real size in the full matrix alone."""
    return pytest.param(megabytes, marks=[pytest.mark.full] if megabytes == FULL_MB else [], id=f"{megabytes}MB")


@pytest.mark.parametrize("megabytes", [size(QUICK_MB), size(FULL_MB)])
def test_counter_goes_on(pair, request, megabytes):
    """INCR all the time: connection survives, every reply is the previous plus one, data complete."""
    start_redis(pair, megabytes=megabytes)
    before = digest(pair, "a", "redis", megabytes * 32)
    client = Client(pair, "count", LAN_ADDRESS)
    report = pair.move("a", "redis")
    seen = client.finish()
    assert report["result"] == "ok"
    assert seen["breaks"] == 0 and seen["wrong"] == 0 and seen["operations"] > 100
    assert report["memory"]["bytes"] > megabytes * 1000000
    record_gap(request, report, seen)
    assert digest(pair, "b", "redis", megabytes * 32) == before
    check_moved(pair, "a", "redis")


@pytest.mark.parametrize("megabytes", [pytest.param(0, id="small"), size(FULL_MB)])
def test_pipelines_on_many_connections(pair, request, megabytes):
    """Eight connections with sixteen requests under way on each."""
    start_redis(pair, megabytes=megabytes)
    client = Client(pair, "count", LAN_ADDRESS, 8, 16)
    report = pair.move("a", "redis")
    seen = client.finish()
    assert seen["breaks"] == 0 and seen["wrong"] == 0 and seen["operations"] > 1000
    assert report["network"]["tcp_connections"] >= 8
    record_gap(request, report, seen)
    check_moved(pair, "a", "redis")


@pytest.mark.parametrize("seconds", [pytest.param(0, id="short"),
                                     pytest.param(IDLE_SECONDS, id="minute", marks=pytest.mark.full)])
def test_idle_connection(pair, seconds):
    """A connection that says nothing for long is still the same connection to the server."""
    start_redis(pair)
    client = Client(pair, "idle", LAN_ADDRESS)
    pair.move("a", "redis")
    listed = pair.bed.b.docker("exec", "redis", "redis-cli", "client", "list")
    assert "name=idler" in listed
    if seconds:
        wait_for(lambda: idle_time(pair) >= seconds, "a minute passes", seconds + 30, step=1)
    seen = client.finish()
    assert seen == {"before": "+OK\r\n", "after": "$5\r\nidler\r\n"}
    check_moved(pair, "a", "redis")


def idle_time(pair):
    """Seconds since the idle connection's last command, as its server counts them."""
    listed = pair.bed.b.docker("exec", "redis", "redis-cli", "client", "list").splitlines()
    line = next(line for line in listed if "name=idler" in line)
    return int(line.split(" idle=")[1].split()[0])


def test_data_in_flight_both_ways(pair, request):
    """Large values up and down at the same time, each checked."""
    start_redis(pair)
    client = Client(pair, "pump", LAN_ADDRESS)
    report = pair.move("a", "redis")
    seen = client.finish()
    assert seen["wrong"] == 0 and seen["values"] > 10
    record_gap(request, report, seen)
    check_moved(pair, "a", "redis")


def test_there_and_back_twice(pair):
    """A to B to A, twice, on one connection."""
    start_redis(pair)
    client = Client(pair, "count", LAN_ADDRESS)
    for source in ("a", "b", "a", "b"):
        pair.move(source, "redis")
        check_moved(pair, source, "redis")
    seen = client.finish()
    assert seen["breaks"] == 0 and seen["wrong"] == 0
