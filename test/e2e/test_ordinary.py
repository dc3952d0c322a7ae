# SPDX-License-Identifier: GPL-2.0-or-later
"""At the destination it is a container like any other: exec, logs, top, stop, restart, rm, health, exit codes."""

import subprocess

import pytest

from pair import wait_for
from steps import COUNTING, PATIENT, check_moved, inside, shell

PROCESSES = 60


def lines(pair, host, name):
    """What docker logs shows."""
    return pair.bed.host(host).docker("logs", name).splitlines()


def test_logs_go_on(pair):
    """History from before, no line lost or twice, order kept, also with a second move."""
    shell(pair, "a", "log", COUNTING)
    for source, target in (("a", "b"), ("b", "a")):
        at_start = len(lines(pair, source, "log"))
        pair.move(source, "log")
        moved = len(lines(pair, target, "log"))
        assert moved >= at_start
        wait_for(lambda: len(lines(pair, target, "log")) > moved + 20, "it goes on writing")
        seen = lines(pair, target, "log")
        assert seen == [f"line {i}" for i in range(len(seen))]
    check_moved(pair, "b", "log")


@pytest.mark.full
def test_follow_logs_from_the_destination(pair):
    """docker logs -f at the destination gets what is written after the move, on both streams."""
    shell(pair, "a", "log", "mkfifo /fifo; while :; do read x < /fifo; echo out $x; echo err $x >&2; done")
    pair.move("a", "log")
    with pair.bed.b.popen(["docker", "logs", "-f", "log"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as follower:
        inside(pair, "b", "log", "echo here > /fifo")
        assert follower.stdout.readline() == "out here\n"
        assert follower.stderr.readline() == "err here\n"
        follower.kill()


def test_many_processes(pair):
    """A container with 60 processes keeps each with its number, command and parent."""
    shell(pair, "a", "many", f"for i in $(seq {PROCESSES - 1}); do sleep 10000$i & done; wait")
    script = "ps -o pid,ppid,args | grep 'sleep 1' | grep -v grep"
    # each has started its program: a child that was only forked still has its parent's name
    wait_for(lambda: inside(pair, "a", "many", "ps -o args | grep -c '^sleep 1'") == str(PROCESSES - 1), "all run")
    before = inside(pair, "a", "many", script)
    pair.move("a", "many")
    check_moved(pair, "a", "many")
    assert len(pair.bed.b.docker("top", "many").splitlines()) == PROCESSES + 1
    after = inside(pair, "b", "many", script)
    assert after == before and len(after.splitlines()) == PROCESSES


def test_exit_code_is_reported(pair):
    """docker stop, wait, inspect and events tell the code that the process ended with."""
    shell(pair, "a", "code", PATIENT)
    pair.move("a", "code")
    with pair.bed.b.popen(["docker", "wait", "code"], stdout=subprocess.PIPE, text=True) as waiter:
        pair.bed.b.docker("stop", "code")
        assert waiter.communicate(timeout=20)[0].strip() == "7"
    state = pair.inspect("b", "code")["State"]
    assert state["ExitCode"] == 7 and state["Status"] == "exited" and state["Pid"] == 0


@pytest.mark.full
def test_end_by_itself(pair):
    """A process that ends by itself after the move."""
    shell(pair, "a", "end", "mkfifo /fifo; read x < /fifo; exit 0")
    pair.move("a", "end")
    inside(pair, "b", "end", "echo > /fifo")
    assert pair.bed.b.docker("wait", "end") == "0"


def test_restart_pause_and_rm(pair):
    """restart, pause, kill and rm as for any container."""
    shell(pair, "a", "any", "echo run >> /runs; exec sleep 1000")
    pair.move("a", "any")
    pair.bed.b.docker("pause", "any")
    assert pair.inspect("b", "any")["State"]["Paused"]
    pair.bed.b.docker("unpause", "any")
    pair.bed.b.docker("restart", "-t", "1", "any")
    assert inside(pair, "b", "any", "cat /runs").split() == ["run", "run"]
    pair.bed.b.docker("kill", "any")
    assert pair.inspect("b", "any")["State"]["ExitCode"] == 137
    pair.bed.b.docker("rm", "any")
    assert not pair.exists("b", "any")


def test_stays_healthy(pair):
    """A health check goes on; Docker never calls it unhealthy."""
    shell(pair, "a", "well", "touch /alive; exec sleep 1000", options=(
        "--health-cmd", "test -e /alive", "--health-interval", "1s", "--health-retries", "2"))
    wait_for(lambda: health(pair, "a")["Status"] == "healthy", "healthy")
    pair.move("a", "well")
    wait_for(lambda: health(pair, "b")["Status"] == "healthy" and len(health(pair, "b")["Log"]) >= 2,
             "healthy at the destination")
    assert health(pair, "b")["FailingStreak"] == 0
    assert all(probe["ExitCode"] == 0 for probe in health(pair, "b")["Log"])
    check_moved(pair, "a", "well")


def health(pair, host):
    """Docker's view of the container's health."""
    return pair.inspect(host, "well")["State"]["Health"]
