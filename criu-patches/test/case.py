# SPDX-License-Identifier: GPL-2.0-or-later
"""What each case works with."""
import os
import shutil

import lab

DUMP_STAGES = ["pre-dump", "post-freeze", "network-lock", "post-dump"]
# Up to pre-resume nothing has run, after it all of it has
BEFORE_RESUME = ["pre-restore", "root-host-pid", "setup-namespaces", "post-setup-namespaces", "post-restore",
                 "network-unlock", "pre-resume"]
RESTORE_STAGES = BEFORE_RESUME + ["post-resume"]


class Case:
    """What each case works with; a fresh folder every time."""

    def __init__(self, criu, victim, folder):
        self.criu, self.victim_binary, self.folder = criu, victim, folder
        self.images = os.path.join(folder, "img")

    def fresh(self, uid=0, prepare=None):
        shutil.rmtree(self.images, ignore_errors=True)
        os.mkdir(self.images)
        return lab.Victim(self.victim_binary, self.folder, uid, prepare)

    def run(self, *args, **kwargs):
        common = ["-D", self.images, "-o", "criu.log", "-v4", "--manage-cgroups=ignore"]
        return lab.Criu(self.criu, self.folder, [args[0], *common, *args[1:]], **kwargs)

    def dump(self, victim, *args, **kwargs):
        return self.run("dump", "-t", str(victim.root), "--network-lock", "skip", *args, **kwargs)

    def restore(self, *args):
        return self.run("restore", "-d", "--network-lock", "skip", *args)

    def dumped(self, uid=0):
        """A victim that is in images only."""
        victim = self.fresh(uid)
        criu = self.dump(victim)
        assert criu.finish() == 0
        lab.wait_for("victim ends", lambda: (lab.reap(), victim.proc.poll())[1] is not None)
        return victim
