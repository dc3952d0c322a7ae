# SPDX-License-Identifier: GPL-2.0-or-later
"""Dump: stages, refusals, the ways to configure the socket, tmpfs mounts."""
import os
import select
import signal
import stat
import subprocess

import lab
import rpc
from case import DUMP_STAGES, RESTORE_STAGES
from lab import answer


def case_dump_stages(c):
    """Stages come in their order and from post-freeze on nothing runs."""
    victim = c.fresh()
    criu = c.dump(victim)
    while got := criu.next():
        assert got[1] == victim.root, got
        if got[0] == "pre-dump":
            victim.assert_runs()
        else:
            victim.assert_still()
        criu.say(answer())
    assert criu.wait() == 0
    assert criu.stages == DUMP_STAGES, criu.stages
    lab.wait_for("dumped tasks die", lambda: (lab.reap(), not lab.victims_left())[1])


def case_dump_refused(c):
    """A stage that is refused fails the dump and the tasks go on."""
    victim = c.fresh()
    for stage in DUMP_STAGES:
        criu = c.dump(victim)
        criu.until(stage)
        criu.say(answer(1))
        assert criu.finish() != 0, stage
        victim.assert_runs()


def case_dump_bad_answers(c):
    """So do the end of the connection and answers that are none."""
    victim = c.fresh()
    good = answer()
    for packet in [None, good[:-1], good + b"\0", b"\1" + good[1:]]:
        criu = c.dump(victim)
        criu.until("post-dump")
        if packet:
            criu.say(packet)
        assert criu.hang_up() != 0, packet
        victim.assert_runs()


def case_dump_killed(c):
    """CRIU killed while the dump is complete: the tasks go on."""
    victim = c.fresh()
    criu = c.dump(victim)
    criu.until("post-dump")
    criu.kill()
    victim.assert_runs()


def case_dumped_tasks_killed(c):
    """How a migration ends: the tasks are killed first, then CRIU hears that all is well."""
    victim = c.fresh()
    criu = c.dump(victim)
    criu.until("post-dump")
    for pid in lab.tree(victim.root):
        os.kill(pid, signal.SIGKILL)
    criu.say(answer())
    assert criu.finish() == 0
    lab.wait_for("nobody is left", lambda: (lab.reap(), not lab.victims_left())[1])


def case_no_listener(c):
    """Nobody listens: CRIU ends before it has touched anything."""
    victim = c.fresh()
    criu = c.dump(victim, "--notify-socket", "/nowhere/socket", option=False)
    assert criu.wait() != 0
    assert "Can't connect" in criu.log() and "Seized" not in criu.log()
    victim.assert_runs()


def case_config_file(c):
    victim = c.fresh()
    config = os.path.join(c.folder, "criu.conf")
    with open(config, "w") as f:
        f.write(f"notify-socket {c.folder}/notify.sock\n")
    criu = c.dump(victim, option=False, env={"CRIU_CONFIG_FILE": config})
    assert criu.finish() == 0
    assert criu.stages == DUMP_STAGES, criu.stages


def swrk(c, kind, pid=None):
    """One run of CRIU's RPC, as runc does it, with the socket in a configuration file."""
    config = os.path.join(c.folder, "criu.conf")
    with open(config, "w") as f:
        f.write(f"notify-socket {c.folder}/notify.sock\n")
    notify = lab.Notify(c.folder)
    worker = rpc.Swrk(c.criu, kind, c.images, {"CRIU_CONFIG_FILE": config}, pid)
    while True:
        ready = select.select([worker.sock, notify], [], [], lab.TIMEOUT)[0]
        assert ready, (worker.notified, notify.stages)
        if worker.sock in ready and not worker.pump():
            break
        if notify in ready and not notify.conn:
            notify.accept()
        elif notify in ready and notify.next():
            # An RPC notification comes before the same stage on the socket
            stage = notify.stages[-1]
            assert stage == "root-host-pid" or stage in worker.notified, stage
            notify.say(answer())
    worker.close()
    notify.close()
    assert worker.success
    return worker.notified, notify.stages


def case_rpc(c):
    victim = c.fresh()
    notified, stages = swrk(c, rpc.DUMP, victim.root)
    assert stages == DUMP_STAGES, stages
    assert [s for s in notified if s != "query-ext-files"] == DUMP_STAGES, notified
    lab.wait_for("victim ends", lambda: (lab.reap(), victim.proc.poll())[1] is not None)
    notified, stages = swrk(c, rpc.RESTORE)
    assert stages == RESTORE_STAGES, stages
    assert "root-host-pid" not in notified, notified
    victim.assert_runs()


# Mounts of a container: one that CRIU writes itself, an empty one, and one that is left to tar
TMPFS_MOUNTS = """
mkdir -p plain empty sparse
mount -t tmpfs one plain
mount -t tmpfs two empty
mount -t tmpfs three sparse
cd plain
mkdir -m 1770 d; mkdir d/e; head -c 70001 /dev/urandom >d/e/f; ln -s ../nowhere d/l; mkfifo -m 640 d/p
mknod -m 666 null c 1 3; echo x >s; chown 7:8 d s; chmod 4755 s; touch -d @978310861 d d/l s .
cd ../sparse
truncate -s 1M hole; echo x >a; ln a b
cd ..
"""


def describe(root):
    """Everything that has to be the same again below a folder."""
    lines = []
    for path, dirs, files in os.walk(root):
        for name in sorted([".", *files, *dirs]):
            full = os.path.join(path, name)
            st = os.lstat(full)
            lines.append((os.path.relpath(full, root), st.st_mode, st.st_uid, st.st_gid, int(st.st_mtime), st.st_rdev,
                          st.st_nlink, os.readlink(full) if os.path.islink(full) else "",
                          open(full, "rb").read() if stat.S_ISREG(st.st_mode) else b""))
    return sorted(lines)


def archives(c):
    """How each tmpfs was written: 'tar' by CRIU itself, 'gz' by tar."""
    kinds = []
    for name in os.listdir(c.images):
        if name.startswith("tmpfs-"):
            with open(f"{c.images}/{name}", "rb") as f:
                head = f.read(512)
            kinds.append("gz" if head[:2] == b"\x1f\x8b" else "tar" if head[257:262] == b"ustar" else "?")
    return sorted(kinds)


def move_mounts(c, option):
    """Dumps and restores a container, and compares its mounts; how they were written."""
    victim = c.fresh(prepare=TMPFS_MOUNTS)
    mounts = ["plain", "empty", "sparse"]
    before = [describe(f"/proc/{victim.root}/root/{m}") for m in mounts]
    assert len(before[0]) > 8 and len(before[1]) == 1
    criu = c.dump(victim, "--root", c.folder, *option)
    assert criu.finish() == 0
    criu = c.restore("--root", c.folder)
    root = criu.until("post-resume")[1]
    criu.say(answer())
    assert criu.finish() == 0
    victim.assert_runs()
    assert [describe(f"/proc/{root}/root/{m}") for m in mounts] == before
    lab.kill_all()
    return archives(c)


def case_inline_tmpfs(c):
    """A tmpfs comes back the same, with tar only where CRIU can't do it."""
    # A container's root is a mount
    subprocess.run(["mount", "--bind", c.folder, c.folder], check=True)
    try:
        assert move_mounts(c, ["--inline-tmpfs"]) == ["gz", "tar", "tar"]
        assert move_mounts(c, []) == ["gz", "gz", "gz"]
    finally:
        lab.kill_all()
        subprocess.run(["umount", "-l", c.folder], check=True)
