# SPDX-License-Identifier: GPL-2.0-or-later
"""Restore: stages, refusals, deaths, the pid of the root task, other users."""
import os
import threading

import lab
from case import BEFORE_RESUME, RESTORE_STAGES
from lab import answer

# CRIU is killed so often, spread over the seconds that a restore takes
KILLS = 40
KILLS_SPAN = 0.1
# Some user, with no meaning on the machine
USER = 4242
# Not near any number that the namespace of this test has reached
HOST_PID = 20000


def case_restore_stages(c):
    """Stages come in their order, nothing runs before the last, no descriptor stays."""
    victim = c.dumped()
    criu = c.restore()
    root = 0
    while got := criu.next():
        if got[0] == "post-resume":
            victim.assert_runs()
        else:
            victim.assert_still()
        root = got[1]
        assert bool(root) == (got[0] not in ["pre-restore", "root-host-pid"]), got
        criu.say(answer())
    assert criu.wait() == 0
    assert criu.stages == RESTORE_STAGES, criu.stages
    for pid in lab.tree(root):
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert not [link for link in links if link.startswith("socket:")], links


def each_way_of_restore(c, end):
    """end(criu) at each stage before the tasks run; none may have run, none may be left."""
    for parent in [[], ["--restore-sibling"]]:
        for stage in BEFORE_RESUME:
            victim = c.dumped()
            criu = c.restore(*parent)
            criu.until(stage)
            before = victim.beats()
            end(criu)
            lab.wait_for(f"tasks die at {stage} {parent}", lambda: (lab.reap(), not lab.victims_left())[1])
            assert victim.beats() == before, (stage, parent)


def case_restore_refused(c):
    def end(criu):
        criu.say(answer(1))
        assert criu.finish() != 0
    each_way_of_restore(c, end)


def case_restore_hung_up(c):
    def end(criu):
        assert criu.hang_up() != 0
    each_way_of_restore(c, end)


def case_restore_killed(c):
    """CRIU killed during restore takes the tasks along."""
    each_way_of_restore(c, lambda criu: criu.kill())


def case_restore_killed_anytime(c):
    """At any other moment as well: no window, nothing left behind."""
    victim = c.dumped()
    before = victim.beats()
    for n in range(KILLS):
        criu = c.restore(*(["--restore-sibling"] if n % 2 else []))
        criu.accept()  # a probe of the kernel, before that, may leave a sleeping child
        killer = threading.Timer(n * KILLS_SPAN / KILLS, criu.proc.kill)
        killer.start()
        try:
            criu.until("pre-resume")
            criu.proc.wait(lab.TIMEOUT)
        except AssertionError:
            pass  # killed before it came that far
        killer.join()
        criu.wait()
        lab.wait_for(f"tasks die, kill {n}", lambda: (lab.reap(), not lab.victims_left())[1])
        assert victim.beats() == before, n


def case_restored_survive(c):
    """CRIU killed at post-resume: the tasks run on."""
    victim = c.dumped()
    criu = c.restore()
    criu.until("post-resume")
    criu.kill()
    victim.assert_runs()


def case_root_host_pid(c):
    victim = c.dumped()
    criu = c.restore()
    criu.until("root-host-pid")
    criu.say(answer(value=HOST_PID))
    assert criu.until("post-resume")[1] == HOST_PID
    criu.say(answer())
    assert criu.finish() == 0
    victim.assert_runs()
    with open(f"/proc/{HOST_PID}/status") as f:
        assert f"NSpid:\t{HOST_PID}\t1\n" in f.read()


def case_root_host_pid_taken(c):
    for value, complaint in [(os.getpid(), f"root task pid {os.getpid()} is taken"), (-1, "Bad root task pid -1")]:
        c.dumped()
        criu = c.restore()
        criu.until("root-host-pid")
        criu.say(answer(value=value))
        assert criu.finish() != 0
        assert complaint in criu.log()


def case_wait_images(c):
    """CRIU asks before it reads the first image, which comes only then."""
    victim = c.dumped()
    later = c.images + ".later"
    os.rename(c.images, later)
    os.mkdir(c.images)
    criu = c.restore("--wait-images")
    assert criu.next()[0] == "wait-images"
    for name in os.listdir(later):
        if name != "criu.log":
            os.rename(f"{later}/{name}", f"{c.images}/{name}")
    os.unlink(f"{later}/criu.log")
    os.rmdir(later)
    criu.say(answer())
    assert criu.finish() == 0
    assert criu.stages == ["wait-images"] + RESTORE_STAGES, criu.stages
    victim.assert_runs()


def case_wait_images_refused(c):
    victim = c.dumped()
    before = victim.beats()
    criu = c.restore("--wait-images")
    criu.until("wait-images")
    criu.say(answer(1))
    assert criu.finish() != 0
    assert criu.stages == ["wait-images"], criu.stages
    assert "The images will not come" in criu.log()
    assert victim.beats() == before and not lab.victims_left()


def case_oom_score_adj(c):
    """0 is restored as well, whatever CRIU's caller has."""
    victim = c.dumped()
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write("300")
    criu = c.restore()
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write("0")
    root = criu.until("post-resume")[1]
    criu.say(answer())
    assert criu.finish() == 0
    victim.assert_runs()
    for pid in lab.tree(root):
        with open(f"/proc/{pid}/oom_score_adj") as f:
            assert f.read() == "0\n", pid


def soft_nofile(pid):
    with open(f"/proc/{pid}/limits") as f:
        return [line.split()[3] for line in f if line.startswith("Max open files")][0]


def case_other_user(c):
    """Tasks of another user, which prlimit() refuses without CAP_SYS_RESOURCE."""
    victim = c.dumped(USER)
    criu = c.restore()
    root = criu.until("post-resume")[1]
    criu.say(answer())
    assert criu.finish() == 0
    victim.assert_runs()
    users = [os.stat(f"/proc/{pid}").st_uid for pid in lab.tree(root)]
    assert users == [0, USER, USER], users
    # see CHILD_NOFILE in victim.c
    limits = [soft_nofile(pid) for pid in lab.tree(root)]
    assert limits[1:] == ["333", "333"] and limits[0] != "333", limits
