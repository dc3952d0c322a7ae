# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever dies before the commit: the source serves on, the destination is clean, the next migration works."""

import time

import pytest

import processes
from pair import other, wait_for

# seconds from the detection of a failure until the source serves
SERVE = 1.0
# how long silence is no failure: while frozen, before
SILENCE_FROZEN, SILENCE = 1.0, 10.0

POINTS = ["before-check", "before-prepare", "before-stage", "before-freeze", "frozen", "after-freeze",
          "after-state", "after-ready"]
FROZEN = POINTS[4:]
EVERYWHERE = ["source-worker", "source-supervisor", "source-both", "destination-worker",
              "destination-supervisor", "destination-both", "link"]
RESTORING = ["destination-helper", "destination-runc", "destination-criu"]

# chosen by risk
QUICK = {("before-stage", "destination-both"), ("frozen", "source-criu"), ("after-freeze", "source-both"),
         ("after-ready", "source-worker"), ("after-ready", "link"), ("after-ready", "destination-criu")}


# the cgroup is frozen: nobody needs CRIU any more
CARRIES_ON = {("after-ready", "source-criu"), ("after-ready", "source-runc")}


def victims(point):
    """What exists at a point and can be hit."""
    found = list(EVERYWHERE)
    if point in FROZEN:
        found += ["source-runc", "source-criu"]
    if point in POINTS[3:]:
        found += RESTORING
    return found


def cases(table):
    """pytest parameters, those outside the quick set marked."""
    return [pytest.param(*each, id="-".join(each).replace(":", "-"),
                         marks=[] if each in QUICK else pytest.mark.full) for each in table]


def detection(point, victim):
    """Seconds that a failure may go unnoticed."""
    if victim != "link" and not victim.endswith("hang"):
        return 0.0
    return SILENCE_FROZEN if point in FROZEN else SILENCE


def check_failed(rig, code, report, errors, codes=(4,)):
    """It says that it failed, and where."""
    assert code in codes and report["exit_code"] == code, (code, report, errors)
    assert report["result"] in ("failed", "cancelled"), report
    assert report["error"]["message"] and report["error"]["side"] in ("source", "destination"), report
    print(f"{report['error']['side']}: {report['error']['message']}")


def check_undone(rig, before, moment, limit, case):
    """The source serves in time, and nothing is left."""
    served = rig.client.first_after(moment) - moment
    rig.measured.append((case, served))
    rig.bed.heal("a")
    rig.bed.heal("b")
    rig.clean(rig.target, before[rig.target.name])
    rig.serves_at_home(before[rig.home])
    assert served < limit, f"served only after {served:.3f} s"


def run(rig, fault, victim, case, frozen):

    """One case: reach the point, hit, look, migrate."""
    before = {host.name: rig.inventory(host) for host in rig.bed.docker_hosts}
    side = fault.split(":")[0]
    point = fault.split(":")[1]
    command = rig.start(fault)
    rig.reached(side, command)
    moment = rig.hit(victim)
    if victim in ("source-runc", "source-criu"):
        rig.release(side)  # every other death stops the worker by itself
    code, report, errors = rig.finish(command)
    if code == 0 and (point, victim) in CARRIES_ON:
        rig.home = other(rig.home)
        rig.moved()
        return
    quiet = detection("frozen" if frozen else "", victim)
    check_failed(rig, code, report, errors)
    check_undone(rig, before, moment, quiet + SERVE, case)
    rig.move()


@pytest.mark.parametrize("point,victim", cases((p, v) for p in POINTS for v in victims(p)))
def test_killed_at_the_source_s_point(rig, point, victim):
    """The source's worker is at that point when it, or something else, dies."""
    run(rig, f"source:{point}:stop", victim, f"{point} {victim}", point in FROZEN)


DEST_POINTS = ["before-check", "after-prepare", "before-stage", "after-stage", "stream-rootfs", "stream-criu", "before-state"]
DEST_FROZEN = DEST_POINTS[4:]
DEST_VICTIMS = ["destination-worker", "destination-both", "source-worker", "source-both", "link"]
DEST_QUICK = {("stream-criu", "destination-worker")}


@pytest.mark.parametrize("point,victim", [
    pytest.param(p, v, id=f"{p}-{v}", marks=[] if (p, v) in DEST_QUICK else pytest.mark.full)
    for p in DEST_POINTS for v in DEST_VICTIMS])
def test_killed_at_the_destination_s_point(rig, point, victim):
    """The destination's worker is at that point."""
    run(rig, f"destination:{point}:stop", victim, f"destination {point} {victim}", point in DEST_FROZEN)


@pytest.mark.parametrize("fault,frozen", [
    pytest.param("source:before-stage:fail", False, marks=pytest.mark.full),
    pytest.param("source:after-freeze:fail", True, marks=pytest.mark.full),
    pytest.param("source:after-ready:fail", True, marks=pytest.mark.full),
    pytest.param("source:after-ready:hang", True, marks=pytest.mark.full),
    pytest.param("destination:after-prepare:fail", False, marks=pytest.mark.full),
    pytest.param("destination:after-stage:fail", False, marks=pytest.mark.full),
    pytest.param("destination:stream-criu:fail", True, marks=pytest.mark.full),
    pytest.param("destination:stream-rootfs:hang", True),
    pytest.param("destination:before-check:hang", False, marks=pytest.mark.full),
])
def test_fails_or_hangs(rig, fault, frozen):
    """A step fails by itself; a worker is stuck as on a host that swaps."""
    before = {host.name: rig.inventory(host) for host in rig.bed.docker_hosts}
    began = time.monotonic()
    command = rig.start(fault)
    side, _, action = fault.split(":")
    host = rig.source if side == "source" else rig.target
    if action == "hang" and side == "source":
        # nobody but a person can tell that a stopped process will not go on: the peer gives up, a kill ends it
        stopped = lambda: [each for each in processes.roles(host)["worker"] if each.state == "T"]  # noqa: E731
        wait_for(stopped, "the worker is stopped", 60, 0.01)
        rig.clean(rig.target, before[rig.target.name])
        processes.kill(stopped())
        began = time.monotonic()
    code, report, errors = rig.finish(command)
    if action == "hang":
        processes.kill(processes.roles(host)["worker"])
    check_failed(rig, code, report, errors)
    check_undone(rig, before, time.monotonic() if side == "destination" or action == "fail" else began, SERVE, fault)
    gap = max(line[3] for line in rig.client.lines if line[0] > began)
    assert gap < 60
    rig.move()


@pytest.mark.full
@pytest.mark.parametrize("point", ["before-prepare", "after-ready"])
def test_command_killed(rig, point):
    """The command is only a window: the migration goes on without it."""
    command = rig.start(f"source:{point}:stop")
    rig.reached("source", command)
    rig.hit("source-command")
    rig.release("source")
    command.communicate(timeout=10)
    rig.home = rig.target.name
    wait_for(lambda: rig.pair.is_running(rig.home, "redis") and not rig.pair.exists(rig.target.name, "redis"),
             "the migration ends", 30)
    rig.moved()
    rig.move()
