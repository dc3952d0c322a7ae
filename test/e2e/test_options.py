# SPDX-License-Identifier: GPL-2.0-or-later
"""What the options of a move promise."""

import contextlib
import json
import os
import pty
import select
import subprocess

import pytest

from clients import Client
from pair import wait_for
from steps import check_moved, check_stayed, inside, refused, shell, start_redis

SLEEP = "exec sleep 10000"


@contextlib.contextmanager
def running_exec(pair, name, script):
    """docker exec that runs a script, from when it runs; at the end the container is removed if it is still here."""
    started = pair.bed.a.popen(["docker", "exec", name, "sh", "-c", "echo started; " + script],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout.readline() == "started\n"
        yield started
    finally:
        pair.bed.a.run(["docker", "rm", "-f", name], check=False)
        started.kill()
        started.communicate()


def test_exec_refuse(pair):
    """--exec refuse: nothing changes, the exec goes on, the restart policy is as it was."""
    shell(pair, "a", "busy", SLEEP, options=("--restart", "always"))
    with running_exec(pair, "busy", "read x < /proc/1/stat; sleep 10001") as running:
        message = refused(pair, "a", "busy", 3, "--exec", "refuse")
        assert "docker exec" in message and "sleep" in message
        check_stayed(pair, "a", "busy")
        assert running.poll() is None
        assert policy(pair, "a", "busy") == "always"


def test_exec_wait(pair):
    """--exec wait: the exec ends by itself with its own exit code, then the container moves."""
    shell(pair, "a", "busy", SLEEP)
    with running_exec(pair, "busy", "sleep 2; exit 5") as running:
        pair.move("a", "busy")
        assert running.wait(timeout=20) == 5
    check_moved(pair, "a", "busy")


@pytest.mark.full
def test_exec_wait_ends(pair):
    """--exec wait gives up after ten seconds and says who was in the way."""
    shell(pair, "a", "busy", SLEEP)
    with running_exec(pair, "busy", "sleep 10001"):
        assert "(sleep)" in refused(pair, "a", "busy", 3)
        check_stayed(pair, "a", "busy")


def test_exec_drop(pair):
    """--exec drop: the container moves, the exec ends with the source, the report says so."""
    shell(pair, "a", "busy", SLEEP)
    with running_exec(pair, "busy", "sleep 10001") as running:
        report = pair.move("a", "busy", "--exec", "drop")
        assert running.wait(timeout=20) != 0
    assert any("(sleep)" in warning for warning in report["warnings"])
    check_moved(pair, "a", "busy")
    assert "10001" not in pair.bed.b.docker("top", "busy")


def policy(pair, host, name):
    """Restart policy that Docker has for it."""
    return pair.inspect(host, name)["HostConfig"]["RestartPolicy"]["Name"]


def test_restart_policy_moves(pair):
    """Set at the destination once it runs there; it works there."""
    shell(pair, "a", "again", "exec sleep 10000", options=("--restart", "on-failure:3"))
    pair.move("a", "again")
    check_moved(pair, "a", "again")
    assert pair.inspect("b", "again")["HostConfig"]["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 3}
    pair.bed.b.run(["kill", "-9", str(pair.inspect("b", "again")["State"]["Pid"])])
    wait_for(lambda: pair.inspect("b", "again")["RestartCount"] == 1 and pair.is_running("b", "again"),
             "Docker starts it again")


def test_rm_container(pair):
    """--rm: gone at the source with its anonymous volume, and gone at the destination when it ends there."""
    shell(pair, "a", "brief", PATIENT_VOLUME, options=("--rm", "-v", "/keep"))
    pair.move("a", "brief")
    check_moved(pair, "a", "brief")
    assert inside(pair, "b", "brief", "cat /keep/file") == "kept"
    assert pair.bed.a.docker("volume", "ls", "-q") == ""
    pair.bed.b.docker("stop", "-t", "1", "brief")
    wait_for(lambda: not pair.exists("b", "brief"), "Docker removes it")
    assert pair.bed.b.docker("volume", "ls", "-q") == ""


PATIENT_VOLUME = "echo kept > /keep/file; trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"


@pytest.mark.full
def test_source_keep(pair):
    """--source keep: stopped there and not started again by Docker."""
    shell(pair, "a", "kept", SLEEP, options=("--restart", "always"))
    pair.move("a", "kept", "--source", "keep")
    assert pair.is_running("b", "kept") and pair.exists("a", "kept") and not pair.is_running("a", "kept")
    assert policy(pair, "a", "kept") == "no" and policy(pair, "b", "kept") == "always"
    assert pair.remains("a") == "" and pair.remains("b") == ""


def test_tcp_close_on_the_default_bridge(pair):
    """--tcp close: another address there, old connections closed, new ones work."""
    start_redis(pair, address=None)
    address = pair.inspect("a", "redis")["NetworkSettings"]["IPAddress"]
    pair.bed.a.docker("exec", "redis", "redis-cli", "set", "kept", "value")
    client = Client(pair, "count", address, host="a")
    assert "--tcp close" in refused(pair, "a", "redis", 3)
    check_stayed(pair, "a", "redis")
    report = pair.move("a", "redis", "--tcp", "close")
    assert report["result"] == "ok"
    client.kill()
    check_moved(pair, "a", "redis")
    assert pair.bed.b.docker("exec", "redis", "redis-cli", "get", "kept") == "value"
    there = pair.inspect("b", "redis")["NetworkSettings"]["IPAddress"]
    fresh = Client(pair, "count", there, host="b")
    assert fresh.finish()["wrong"] == 0


def test_dry_run_changes_nothing(pair):
    """--dry-run says ok and leaves both hosts as they are."""
    shell(pair, "a", "look", SLEEP, options=("-v", "e2e-look:/data", "--restart", "always"))
    before, pid = _ids(pair), pair.inspect("a", "look")["State"]["Pid"]
    pair.move("a", "look", "--dry-run")
    assert _ids(pair) == before and pair.inspect("a", "look")["State"]["Pid"] == pid
    check_stayed(pair, "a", "look")
    assert policy(pair, "a", "look") == "always"


def _ids(pair):
    """Names of all that Docker has on both hosts."""
    return [[sorted(host.docker(*words).split()) for words in (("ps", "-aq"), ("images", "-aq"), ("volume", "ls", "-q"),
                                               ("network", "ls", "-q"))] for host in pair.bed.docker_hosts]


def test_name(pair):
    """--name: another name at the destination."""
    shell(pair, "a", "old", SLEEP)
    report = pair.move("a", "old", "--name", "new")
    assert report["name"] == "new"
    check_moved(pair, "a", "old", "new")


def read_until(terminal, text, seconds=10):
    """Read a terminal until it shows something."""
    seen = b""
    while text not in seen:
        assert select.select([terminal], [], [], seconds)[0], f"{text!r} does not come: {seen!r}"
        seen += os.read(terminal, 4096)
    return seen


def test_terminal(pair):
    """-t: docker attach at the destination reaches the same program; resize and Ctrl-C work."""
    shell(pair, "a", "term", "trap 'echo interrupted' INT; while :; do read x && echo got:$x; done", options=("-it",))
    pair.move("a", "term")
    check_moved(pair, "a", "term")
    ours, theirs = pty.openpty()
    with pair.bed.b.popen(["docker", "attach", "term"], stdin=theirs, stdout=theirs, stderr=theirs,
                          start_new_session=True) as attached:
        os.close(theirs)
        os.write(ours, b"hello\n")
        read_until(ours, b"got:hello")
        os.write(ours, b"\x03")
        read_until(ours, b"interrupted")
        attached.kill()
    os.close(ours)


@pytest.mark.full
def test_report_and_status(pair):
    """dmigrate status and report know of the move afterwards."""
    shell(pair, "a", "told", SLEEP)
    report = pair.move("a", "told")
    again = json.loads(pair.dmigrate("a", "report", report["id"], "--json").stdout)
    assert again["id"] == report["id"] and again["result"] == "ok" and again["downtime_ms"] == report["downtime_ms"]
    assert {phase["name"] for phase in report["phases"]} >= {"check", "prepare", "freeze", "commit", "finish"}
    assert report["downtime_ms"] > 0 and report["total_ms"] > report["downtime_ms"]
