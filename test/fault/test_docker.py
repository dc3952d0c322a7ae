# SPDX-License-Identifier: GPL-2.0-or-later
"""People and Docker itself meddle while a migration is under way; disks are full."""

import time

import pytest

from pair import wait_for
from test_before_commit import SERVE, check_failed, check_undone


@pytest.mark.parametrize("order", ["rm", pytest.param("stop", marks=pytest.mark.full),
                                   pytest.param("kill", marks=pytest.mark.full)])
def test_source_stopped_while_frozen(rig, order):
    """Docker stops the frozen container: so it shall be, and nothing runs at the destination."""
    before = rig.inventory(rig.target)
    command = rig.start("source:after-freeze:hold")
    rig.reached("source", command)
    words = {"kill": ["kill"], "stop": ["stop", "-t", "1"], "rm": ["rm", "-f", "-v"]}[order]
    # The signal hits, but CRIU holds the dead: Docker may complain about a zombie until it lets go
    said = rig.source.run(["timeout", "60", "docker", *words, "redis"], check=False)
    print("docker:", said.returncode, said.stderr, [(each.pid, each.name, each.state) for each in rig.copies()])
    rig.release("source")
    code, report, errors = rig.finish(command)
    check_failed(rig, code, report, errors)
    rig.clean(rig.target, before)
    wait_for(lambda: not rig.pair.is_running(rig.home, "redis"), "the container is stopped")
    assert rig.pair.remains(rig.home) == ""
    if rig.pair.exists(rig.home, "redis"):
        assert rig.pair.inspect(rig.home, "redis")["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
    rig.reset()


@pytest.mark.parametrize("order", ["kill", "restart-docker", pytest.param("stop", marks=pytest.mark.full),
                                   pytest.param("rm", marks=pytest.mark.full)])
def test_waiting_target_stopped(rig, order):
    """The destination's container goes while it waits for the freeze: the source has lost nothing."""
    before = {host.name: rig.inventory(host) for host in rig.bed.docker_hosts}
    command = rig.start("source:before-freeze:stop")
    rig.reached("source", command)
    moment = time.monotonic()
    words = {"kill": ["kill"], "stop": ["stop", "-t", "1"], "rm": ["rm", "-f", "-v"]}
    if order in words:
        rig.target.run(["timeout", "30", "docker", *words[order], "redis"], check=False)
    else:
        rig.bed.restart_docker(rig.target.name)
    code, report, errors = rig.finish(command)
    check_failed(rig, code, report, errors, (4, 5))  # stopping the waiting target is a way to cancel
    check_undone(rig, before, moment, SERVE, f"docker {order} of the waiting target")
    rig.move()


DISKS = [("destination", "/run/dmigrate"), ("source", "/run/dmigrate"), ("destination", "/var/lib/dmigrate"),
         ("source", "/var/lib/dmigrate")]


@pytest.mark.parametrize("side,path", [
    pytest.param(*each, id=f"{each[0]}{each[1].replace('/', '-')}",
                 marks=[] if each == DISKS[0] else pytest.mark.full) for each in DISKS])
def test_disk_full(rig, side, path):
    """What must be written does not fit."""
    host = rig.source if side == "source" else rig.target
    before = {each.name: rig.inventory(each) for each in rig.bed.docker_hosts}
    room = "512k" if path.startswith("/run") else "4k"
    host.run(["mkdir", "-p", path])
    host.run(["mount", "-t", "tmpfs", "-o", f"size={room},mode=0700", "tmpfs", path])
    try:
        if room == "4k":
            host.run(["dd", "if=/dev/zero", f"of={path}/filler", "bs=4096", "count=1"])
        moment = time.monotonic()
        command = rig.start()
        code, report, errors = rig.finish(command)
        said = report["error"]["message"] if report.get("error") else errors
        assert code in (1, 3, 4), (code, report, errors)
        assert "space" in said or "/run" in said, said
        wait_for(lambda: not [each for each in rig.inventory(host) if each.startswith("process dmig")], "it ends", 20)
    finally:
        host.run(["umount", "-l", path])
    check_undone(rig, before, moment, SERVE + 5, f"{path} of the {side} full")
    rig.move()
