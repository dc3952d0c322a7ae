# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may die when (the table in docs/design/runtime.md): an uncommitted copy never lives on, a committed one is never killed."""

import os
import pathlib
import signal

import bed as beds
import pytest
from steps import ends_and_goes, nothing_left, ran, restore_up_to


def owner_dies(bed):
    """SIGKILL to dmigrated; another process takes its place for what comes after."""
    bed.driver.kill()
    bed.driver = beds.Driver(bed)


def helper_dies(bed):
    """SIGKILL to the helper."""
    os.kill(bed.helper_pid(), signal.SIGKILL)
    beds.wait_for(lambda: bed.helper_pid() is None, "the helper's end")


def children(pid):
    """Pids of its children."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if int(text.rsplit(")", 1)[1].split()[1]) == pid:
            found.append(int(path.parent.name))
    return found


def restore_processes(bed):
    """(runc restore, its CRIU) while it runs."""
    runc = int((bed.folder / "run" / "target" / f"{bed.id}.helper").read_text().split()[0])
    for pid in children(runc):
        if "criu" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
            return runc, pid
    raise AssertionError("no CRIU")


def reach(bed, dumped, moment):
    """Bring a target to a moment; returns P."""
    pid = bed.start_waiting()
    if moment == "vacated":
        bed.driver("vacate")
    elif moment not in ("waiting", "vacated"):
        restore_up_to(bed, dumped, moment)
    return pid


MOMENTS = ["waiting", "vacated", "pre-restore", "root-host-pid", "setup-namespaces", "post-restore", "pre-resume"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_owner_dies_before_release(bed, dumped, moment):
    pid = reach(bed, dumped, moment)
    owner_dies(bed)
    assert bed.driver("recover") == 0
    ends_and_goes(bed, pid)


@pytest.mark.parametrize("moment", ["waiting", "pre-resume"])
def test_owner_dies_and_nobody_recovers(bed, dumped, moment):
    """The helper alone does it: also the reboot of a supervisor, or one that died too."""
    pid = reach(bed, dumped, moment)
    owner_dies(bed)
    ends_and_goes(bed, pid)


def test_owner_dies_before_start(bed):
    bed.driver("new")
    assert bed.create()[0] == 0
    owner_dies(bed)
    assert bed.runtime("start")[0] == 1
    assert bed.runtime("delete", "--force")[0] == 0
    assert not ran(bed)
    nothing_left(bed)


def test_owner_dies_between_release_and_answer(bed, dumped):
    """CRIU has no answer, so nothing runs; the helper, disarmed, shows Docker the end."""
    pid = reach(bed, dumped, "pre-resume")
    bed.driver("release")
    owner_dies(bed)
    assert bed.driver("outcome 10000") == 0
    ends_and_goes(bed, pid)


def test_owner_dies_after_the_answer(bed, dumped):
    pid = reach(bed, dumped, "pre-resume")
    bed.driver("release")
    bed.driver("answer 0")
    owner_dies(bed)
    assert bed.driver("outcome 10000") == 1
    beds.wait_for(lambda: ran(bed) and bed.count() > dumped.dumped_at, "the counter")
    assert bed.execute("echo", "hi") == (0, "hi\n")
    assert bed.state()["bundle"] == str(bed.bundle)
    assert os.listdir(bed.folder / "run" / "target") == []
    assert bed.signal("KILL")[0] == 0
    assert bed.shim.exit_of(pid) == 137
    assert bed.runtime("delete")[0] == 0
    nothing_left(bed)


def test_docker_can_use_it_before_anybody_looks_at_the_outcome(bed, dumped):
    pid = reach(bed, dumped, "pre-resume")
    bed.driver("release")
    bed.driver("answer 0")
    owner_dies(bed)
    beds.wait_for(lambda: ran(bed) and bed.count() > dumped.dumped_at, "the counter")
    assert bed.execute("echo", "hi") == (0, "hi\n")
    assert bed.create()[0] == 1
    assert bed.signal("KILL")[0] == 0
    assert bed.shim.exit_of(pid) == 137
    assert bed.runtime("delete")[0] == 0
    assert bed.driver("outcome 10000") == 1


@pytest.mark.parametrize("moment", MOMENTS)
def test_helper_dies_before_release(bed, dumped, moment):
    """Docker hears of it by its own `rm -f`: the wrapper's kill makes the tombstone."""
    pid = reach(bed, dumped, moment)
    helper_dies(bed)
    with pytest.raises(beds.DriverError, match="helper died"):
        bed.driver("serve never" if moment not in ("waiting", "vacated") else "check")
    bed.driver("undo")
    assert bed.signal("KILL")[0] == 0
    ends_and_goes(bed, pid)


def test_kill_waits_for_the_undo_when_the_helper_is_dead(bed):
    pid = bed.start_waiting()
    bed.driver("vacate")
    helper_dies(bed)
    bed.shim.call("kill", *bed.globals(), "kill", bed.id, "KILL")
    with pytest.raises(beds.DriverError):
        bed.driver("check")
    bed.driver("undo")
    assert bed.shim.called("kill")[0] == 0
    ends_and_goes(bed, pid)


def test_helper_dies_after_release(bed, dumped):
    pid = reach(bed, dumped, "pre-resume")
    bed.driver("release")
    helper_dies(bed)
    bed.driver("answer 0")
    bed.driver("serve post-resume")
    bed.driver("answer 0")
    bed.driver("commit")
    beds.wait_for(lambda: bed.count() > dumped.dumped_at, "the counter")
    assert bed.signal("KILL")[0] == 0
    assert bed.shim.exit_of(pid) == 137


@pytest.mark.parametrize("moment", ["waiting", "vacated", "root-host-pid", "pre-resume"])
def test_owner_and_helper_die(bed, dumped, moment):
    pid = reach(bed, dumped, moment)
    helper_dies(bed)
    owner_dies(bed)
    assert bed.driver("recover") == 0
    assert bed.signal("KILL")[0] == 0
    ends_and_goes(bed, pid)


def test_owner_and_helper_die_and_only_docker_acts(bed, dumped):
    pid = reach(bed, dumped, "vacated")
    helper_dies(bed)
    owner_dies(bed)
    assert bed.signal("TERM")[0] == 0
    ends_and_goes(bed, pid)


def test_owner_and_helper_die_after_the_answer(bed, dumped):
    pid = reach(bed, dumped, "pre-resume")
    bed.driver("release")
    bed.driver("answer 0")
    helper_dies(bed)
    owner_dies(bed)
    assert bed.driver("outcome 10000") == 1
    beds.wait_for(lambda: ran(bed) and bed.count() > dumped.dumped_at, "the counter")
    assert bed.signal("KILL")[0] == 0
    assert bed.shim.exit_of(pid) == 137


@pytest.mark.parametrize("victim", ["runc", "criu"])
@pytest.mark.parametrize("moment", ["pre-restore", "post-restore", "pre-resume"])
def test_runc_or_criu_dies(bed, dumped, moment, victim):
    pid = reach(bed, dumped, moment)
    runc, criu = restore_processes(bed)
    os.kill(runc if victim == "runc" else criu, signal.SIGKILL)
    with pytest.raises(beds.DriverError):
        bed.driver("wait-restored 5000")
    bed.driver("undo")
    ends_and_goes(bed, pid)


def test_placeholder_is_killed_while_it_waits(bed):
    pid = bed.start_waiting()
    os.kill(pid, signal.SIGKILL)
    beds.wait_for(lambda: fails(bed, "check"), "dmigrated to see it")
    bed.driver("undo")
    ends_and_goes(bed, pid)


def fails(bed, command):
    """Whether the driver answers with an error."""
    try:
        bed.driver(command)
    except beds.DriverError:
        return True
    return False


def test_application_ends_right_after_the_resume(bed, dumped):
    pid = reach(bed, dumped, "pre-resume")
    bed.driver("release")
    bed.driver("answer 0")
    bed.driver("serve post-resume")
    os.kill(pid, signal.SIGKILL)
    bed.driver("answer 0")
    assert bed.shim.exit_of(pid) == 137
    assert bed.runtime("delete")[0] == 0
    bed.driver("commit")
    nothing_left(bed)
