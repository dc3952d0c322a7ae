# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps that several tests share."""

import pytest

from pair import MoveFailed, other, wait_for

COUNTING = "i=0; while :; do echo line $i; i=$((i+1)); usleep 5000; done"
# A shell that answers SIGTERM with an exit code of its own.
PATIENT = "trap 'exit 7' TERM; while :; do sleep 1000 & wait; done"
HARMLESS_GAP_MS = 250  # beside the downtime: the last wait of a client that is retransmitted, and a busy machine


def check_moved(pair, source, name, new_name=None):
    """It runs there and is gone here, and Dmigrate left nothing."""
    assert pair.is_running(other(source), new_name or name)
    assert not pair.exists(source, name)
    assert pair.remains(source) == "" and pair.remains(other(source)) == ""


def check_stayed(pair, source, name):
    """It runs here as before, and the other side knows nothing of it."""
    state = pair.inspect(source, name)["State"]
    assert state["Running"] and not state["Paused"]
    assert not pair.exists(other(source), name)
    assert pair.remains(source) == "" and pair.remains(other(source)) == ""


def refused(pair, source, name, code, *options, target=None):
    """A move that must end with that exit code; returns the message."""
    with pytest.raises(MoveFailed) as caught:
        pair.move(source, name, *options, target=target)
    assert caught.value.code == code, str(caught.value)
    error = caught.value.report.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    assert message, caught.value.report
    return message


def shell(pair, host, name, script, *arguments, options=(), address="10.88.0.51"):
    """A busybox container that runs a script."""
    pair.bed.image("busybox")
    return pair.run(host, name, "busybox", "sh", "-c", script, *arguments, options=options, address=address)


def inside(pair, host, name, script):
    """Output of a script that docker exec runs in the container."""
    return pair.bed.host(host).docker("exec", name, "sh", "-c", script)


def start_redis(pair, host="a", name="redis", megabytes=0, options=(), address="10.88.0.50"):
    """A Redis of that size with its image's own user."""
    pair.bed.image("redis")
    pair.run(host, name, "redis", options=options, address=address)
    wait_for(lambda: "PONG" in pair.bed.host(host).run(
        ["docker", "exec", name, "redis-cli", "ping"], check=False).stdout, "redis answers")
    if megabytes:
        fill(pair, host, name, megabytes)


def fill(pair, host, name, megabytes):
    """Load incompressible data into the Redis of a container, 32 KiB a key."""
    script = ("for i=1,tonumber(ARGV[1])*32 do local t={} for j=1,4096 do "
              "t[j]=struct.pack('d',math.random()*1e18) end "
              "redis.call('set','key'..i,table.concat(t)) end return redis.call('dbsize')")
    pair.bed.host(host).docker("exec", name, "redis-cli", "eval", script, "0", str(megabytes))


def digest(pair, host, name, keys):
    """Redis' own digests of the filled keys."""
    script = ("local r='' for i=1,tonumber(ARGV[1]) do r=redis.sha1hex(r..redis.call('get','key'..i)) end return r")
    return pair.bed.host(host).docker("exec", name, "redis-cli", "--raw", "eval", script, "0", str(keys))


def record_gap(request, report, seen):
    """Keep the figures of a move for the summary of the run."""
    line = (f"{request.node.name}: downtime {report['downtime_ms']:.0f} ms, client's gap {seen['gap_ms']:.0f} ms, "
            f"total {report['total_ms']:.0f} ms")
    request.config.stash.setdefault(FIGURES, []).append(line)
    for key, value in (("downtime_ms", report["downtime_ms"]), ("gap_ms", seen["gap_ms"]),
                       ("total_ms", report["total_ms"])):
        request.node.user_properties.append((key, round(value)))


FIGURES = pytest.StashKey()
