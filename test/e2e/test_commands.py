# SPDX-License-Identifier: GPL-2.0-or-later
"""What a person does with the commands on real hosts: ssh, interrupting, status on either side, the runtime's registration."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios

import pytest

from pair import ADDRESS, BIN, other, wait_for

SSH = {"DMIGRATE_REMOTE": str(BIN / "dmigrated")}
TICKS = 'i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 0.1; done'


@pytest.fixture
def ticking(pair):
    """A container on host a that counts in its log."""
    pair.bed.image("busybox")
    pair.run("a", "ticks", "busybox", "sh", "-c", TICKS)
    wait_for(lambda: "tick 3" in pair.bed.host("a").docker("logs", "ticks"), "it ticks")
    return "ticks"


def ssh(source):
    """The other host as ssh reaches it."""
    return f"ssh://root@{ADDRESS[other(source)]}"


def run(pair, host, *arguments, code=0):
    """dmigrate on a host; returns what it printed."""
    done = pair.bed.host(host).run(["timeout", "120", BIN / "dmigrate", *arguments], check=False, env=SSH)
    assert done.returncode == code, done
    return done


def ticked(pair, host, name):
    """Numbers in the container's log."""
    return [int(line.split()[1]) for line in pair.bed.host(host).docker("logs", name).splitlines()]


def assert_ticks_on(pair, host, name):
    """It runs there, and no number is missing or twice."""
    seen = len(ticked(pair, host, name))
    wait_for(lambda: len(ticked(pair, host, name)) > seen, f"{name} ticks on {host}")
    numbers = ticked(pair, host, name)
    assert numbers == list(range(1, len(numbers) + 1))


def test_move_over_ssh(pair, ticking):
    """The two commands of the README, then both hosts tell the same story."""
    assert "nothing stands in the way" in run(pair, "a", "check", ticking, ssh("a")).stdout
    done = run(pair, "a", "migrate", ticking, ssh("a"))
    assert f"{ticking} moved to {ssh('a')}" in done.stdout and "downtime" in done.stdout
    assert_ticks_on(pair, "b", ticking)
    assert not pair.exists("a", ticking)
    here = json.loads(run(pair, "a", "report", "--json").stdout)
    assert here["result"] == "ok" and here["exit_code"] == 0
    there = json.loads(run(pair, "b", "status", here["id"], "--json").stdout)
    assert there["id"] == here["id"] and there["result"] == "ok"
    assert pair.remains("a") == "" and pair.remains("b") == ""


def interrupt_at(pair, phase, *options):
    """dmigrate at a terminal; Ctrl-C when the live line shows phase. (exit code, what it showed)."""
    master, slave = pty.openpty()
    mover = pair.bed.host("a").popen([BIN / "dmigrate", "migrate", "ticks", ssh("a"), *options], stdin=slave, stdout=slave,
                                     stderr=slave, env=SSH, start_new_session=True,
                                     preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    shown, sent = b"", False
    while True:
        try:
            shown += os.read(master, 4096)
        except OSError:  # the last writer has closed it
            break
        if not sent and phase.encode() in shown:
            os.write(master, b"\x03")
            sent = True
    os.close(master)
    return mover.wait(timeout=60), shown.decode()


@pytest.mark.parametrize("phase", ["prepare", "stage", "freeze"])
def test_interrupt_before_the_commit(pair, ticking, phase):
    """The container goes on here, nothing is there, and the next try works."""
    code, shown = interrupt_at(pair, phase)
    assert code == 5, shown
    assert_ticks_on(pair, "a", ticking)
    assert not pair.exists("b", ticking)
    assert pair.remains("a") == "" and pair.remains("b") == ""
    run(pair, "a", "migrate", ticking, ssh("a"), "--quiet")
    assert_ticks_on(pair, "b", ticking)


def test_closed_terminal(pair, ticking):
    """A migration does not need the terminal, nor the session that it was started from."""
    mover = pair.bed.host("a").popen([BIN / "dmigrate", "migrate", ticking, ssh("a")], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=SSH)
    for line in mover.stderr:
        if line.startswith("check"):
            break
    mover.send_signal(signal.SIGHUP)
    mover.wait(timeout=60)
    wait_for(lambda: not pair.exists("a", ticking), "it is moved")
    assert_ticks_on(pair, "b", ticking)


def test_detach_and_cancel(pair, ticking):
    """--detach returns at once; the id is all that a script needs."""
    migration = run(pair, "a", "migrate", ticking, ssh("a"), "--detach").stdout.strip()
    run(pair, "a", "status", migration, "--watch", "--quiet")
    assert_ticks_on(pair, "b", ticking)
    assert "it is committed" in run(pair, "a", "cancel", migration, code=4).stderr or pair.is_running("b", ticking)


def test_setup_undo_while_the_container_has_the_runtime(pair, ticking):
    """A moved container stays usable without us, and comes back under us."""
    run(pair, "a", "migrate", ticking, ssh("a"), "--quiet")
    host = pair.bed.host("b")
    assert f"for: {ticking}\n" in run(pair, "b", "setup", "--undo").stdout
    host.docker("restart", "-t", "0", ticking)
    assert pair.is_running("b", ticking)
    host.docker("rm", "-f", ticking)
    run(pair, "b", "setup", "--undo")
    assert "dmigrate" not in json.loads(host.docker("info", "-f", "{{json .Runtimes}}"))
    run(pair, "b", "setup")
    assert "dmigrate" in json.loads(host.docker("info", "-f", "{{json .Runtimes}}"))


def test_docker_plugin(pair, ticking):
    """docker dmigrate is dmigrate."""
    plugins = pair.bed.shared / "cli-plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "docker-dmigrate").unlink(missing_ok=True)
    (plugins / "docker-dmigrate").symlink_to(BIN / "docker-dmigrate")
    docker = pair.bed.host("a")
    assert "dmigrate" in docker.docker("--config", str(pair.bed.shared), "--help")
    done = docker.run(["docker", "--config", str(pair.bed.shared), "dmigrate", "check", ticking, "--json"], env=SSH)
    assert json.loads(done.stdout)["result"] == "ok"
