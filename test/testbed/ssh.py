# SPDX-License-Identifier: GPL-2.0-or-later
"""ssh between the hosts: `ssh root@10.77.0.2` on host a works, with keys of this testbed alone.

The files go to their usual places, which are the host's own; the machine's are not touched.
"""

import json
import pathlib
import re
import shutil
import subprocess

from . import apt, daemons, hosts, network, paths

TREE = paths.CACHE / "ssh"
LIBRARIES = TREE / "usr/lib/x86_64-linux-gnu"
# any number does that no account of the machine has
SSHD_UID = 64999
SSHD_CONFIG = f"""\
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PidFile none
SetEnv PATH={hosts.PATH}
Subsystem sftp internal-sftp
"""


def prepare():
    """Unpack the server: installing the package would start one on the machine."""
    with paths.locked(paths.CACHE / "ssh.lock"):
        if (TREE / "versions.json").exists():
            return
        shutil.rmtree(TREE, ignore_errors=True)
        versions = apt.unpack("bookworm", ("openssh-server", "libwrap0"), TREE)
        (TREE / "versions.json").write_text(json.dumps(versions), encoding="utf-8")


def make_keys(folder):
    """One key for both hosts and one for everybody who logs in."""
    folder.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testbed",
                        "-f", folder / name], check=True)


def client_files(folder):
    """{path: (mode, text)} of a host that can log in to the others."""
    names = ",".join(word for host in ("a", "b") for word in (host, network.MGMT_ADDRESS[host]))
    host_key = (folder / "host.pub").read_text(encoding="utf-8")
    return {
        "/root/.ssh/id_ed25519": (0o600, (folder / "user").read_text(encoding="utf-8")),
        "/root/.ssh/known_hosts": (0o600, f"{names} {host_key}"),
        "/etc/ssh/ssh_config": (0o644, ""),
    }


def server_files(folder):
    """{path: (mode, text)} of a host that runs sshd."""
    # an account locked with "!" cannot log in even with a key
    shadow = re.sub("^root:[^:]*:", "root:*:", _read("/etc/shadow"), flags=re.MULTILINE)
    sshd = f"sshd:x:{SSHD_UID}:65534::/run/sshd:/usr/sbin/nologin\n"
    accounts = re.sub("^sshd:.*\n", "", _read("/etc/passwd"), flags=re.MULTILINE)
    return {
        "/root/.ssh/authorized_keys": (0o600, (folder / "user.pub").read_text(encoding="utf-8")),
        "/etc/ssh/ssh_host_ed25519_key": (0o600, (folder / "host").read_text(encoding="utf-8")),
        "/etc/ssh/sshd_config": (0o644, SSHD_CONFIG),
        "/etc/shadow": (0o600, shadow),
        "/etc/passwd": (0o644, accounts + sshd),
        "/run/sshd/.keep": (0o600, ""),
    }


def _read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def start(host):
    """Start the host's sshd."""
    argv = ["env", f"LD_LIBRARY_PATH={LIBRARIES}", TREE / "usr/sbin/sshd", "-D", "-e"]
    host.facts.setdefault("daemons", {})["sshd"] = daemons.start(host, "sshd", argv)
