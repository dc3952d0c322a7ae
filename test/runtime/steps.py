# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps that several tests take."""

import os


def restore_up_to(bed, dumped, stage="pre-resume", options=""):
    """From the waiting helper to a stage of CRIU, which stays unanswered."""
    bed.driver("vacate")
    continue_up_to(bed, dumped, stage, options)


def continue_up_to(bed, dumped, stage="pre-resume", options=""):
    """The same, vacated already."""
    bed.driver(f"restore {dumped.images} {options}")
    bed.driver(f"serve {stage}")


def finish(bed):
    """From pre-resume to an ordinary container."""
    bed.driver("release")
    bed.driver("answer 0")
    bed.driver("serve post-resume")
    bed.driver("answer 0")
    bed.driver("wait-restored")
    bed.driver("commit")


def ran(bed):
    """Whether one instruction of the application was executed at the target."""
    return (bed.bundle / "rootfs" / "count").exists()


def nothing_left(bed):
    """No record, no state, no mount, no cgroup, no file of the target."""
    bed.driver("forget")
    assert bed.state() is None
    assert os.listdir(bed.root) == []
    assert os.listdir(bed.folder / "runc") == ["moby"]
    assert os.listdir(bed.folder / "run" / "target") == []
    assert os.listdir(bed.folder / "state" / "targets") == []
    assert bed.cgroups() == []
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        assert [line for line in f if str(bed.folder) in line] == []


def ends_and_goes(bed, pid):
    """Docker sees the end and deletes; nothing of the application ran, nothing is left."""
    assert bed.shim.exit_of(pid) == 137
    assert bed.runtime("delete")[0] == 0
    assert not ran(bed)
    nothing_left(bed)
