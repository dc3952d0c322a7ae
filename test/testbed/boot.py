# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts one host: run as a program of its own, since unshare changes the whole process.

Reads a specification (JSON) from standard input, joins the host's cgroups, makes its namespaces,
lays out its file systems and leaves its pid 1 behind. Prints the pid of that.
"""

import ctypes
import json
import os
import pathlib
import socket
import sys

CLONE_NEWTIME = 0x00000080
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
NAMESPACES = (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC
              | CLONE_NEWPID | CLONE_NEWNET)

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags):
    """unshare(2)"""
    _check(_libc.unshare(flags), "unshare")


def mount(source, target, kind=None, flags=0, options=None):
    """mount(2)"""
    words = [str(word).encode() if word is not None else None
             for word in (source, target, kind, options)]
    result = _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])
    _check(result, f"mount {source} on {target}")


def bind(source, target):
    """Show source at target, with what is mounted below it."""
    mount(source, target, flags=MS_BIND | MS_REC)


def overlay(lower, private, target):
    """Writes to target go to the host's own directory; the machine's stays as it is."""
    upper, work = private / "upper", private / "work"
    upper.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    mount("overlay", target, "overlay", options=f"lowerdir={lower},upperdir={upper},workdir={work}")


def mount_cgroups(cgroups, mode):
    """v1: the machine's layout; v2: cgroup2 alone, as on a machine that has nothing else."""
    if mode == "v2":
        mount("cgroup2", "/sys/fs/cgroup", "cgroup2")
        return
    mount("tmpfs", "/sys/fs/cgroup", "tmpfs", options="mode=755")
    for each in cgroups:
        target = pathlib.Path("/sys/fs/cgroup") / each["name"]
        target.mkdir()
        mount(each["kind"], target, each["kind"], options=each["options"] or None)
        for alias in each["name"].split(",") if "," in each["name"] else ():
            target.with_name(alias).symlink_to(each["name"])


def mount_docker(tree, overlays):
    """Put the version's programs where a package would have installed them."""
    for folder in ("usr/bin", "usr/sbin"):
        overlay(f"{tree}/{folder}:/{folder}", overlays / folder.replace("/", "-"), f"/{folder}")
        for stray in sorted(pathlib.Path("/usr/local", folder[4:]).glob("*")):
            if pathlib.Path(tree, folder, stray.name).exists():
                bind(f"/{folder}/{stray.name}", stray)
    # --init bind-mounts this file into containers: from ext4, as on a real host
    bind(f"{tree}/usr/bin/tini-static", "/usr/bin/tini-static")


def mount_private(spec):
    """Everything that Docker, ssh and dmigrate keep under fixed paths."""
    state = pathlib.Path(spec["state"])
    overlays = state / "overlay"
    overlay("/etc", overlays / "etc", "/etc")
    overlay("/var/lib", overlays / "var-lib", "/var/lib")
    for name in spec["private"]:
        own = state / "root" / name.strip("/")
        own.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).mkdir(parents=True, exist_ok=True)
        bind(own, name)
    if spec["docker"]:
        mount_docker(spec["docker"], overlays)


def mount_over(spec):
    """Fresh file systems over /run, /tmp and the home, so that no host sees the machine's sockets,
    keys or temporary files. What the testbed itself needs below them stays visible."""
    kept = {path: os.open(path, os.O_PATH) for path in spec["keep"]}
    home = pathlib.Path(spec["state"]) / "root/root"
    home.mkdir(parents=True, exist_ok=True)
    bind(home, "/root")
    for target in spec["tmpfs"]:
        mode = "755" if target == "/run" else "1777"
        mount("tmpfs", target, "tmpfs", options=f"mode={mode}")
    for path, handle in kept.items():
        if any(pathlib.Path(path).is_relative_to(each) for each in ("/root", *spec["tmpfs"])):
            pathlib.Path(path).mkdir(parents=True, exist_ok=True)
            bind(f"/proc/self/fd/{handle}", path)
        os.close(handle)
    pathlib.Path("/run/lock").mkdir()


def mount_all(spec):
    """The host's view of the file system. Propagation is shared, as systemd sets it."""
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    mount("sysfs", "/sys", "sysfs")
    mount_cgroups(spec["cgroups"], spec["cgroup_mode"])
    mount_private(spec)
    mount_over(spec)
    mount(None, "/", flags=MS_REC | MS_SHARED)


def write_files(files):
    """Configuration that must be there before anything starts."""
    for name, (mode, text) in files.items():
        path = pathlib.Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)


def become_init(spec):
    """The rest of pid 1's life is the C program: Python would cost ten megabytes a host."""
    os.setsid()
    socket.sethostname(spec["hostname"])
    mount_all(spec)
    write_files(spec["files"])
    os.chdir("/")
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.execv(spec["init"], ["testbed-init"])


def join(directory):
    """Put this process into a cgroup."""
    pathlib.Path(directory, "cgroup.procs").write_text("0", encoding="utf-8")


def enter_namespaces(spec):
    """The cgroup we are in at the unshare becomes the root of the cgroup namespace."""
    for each in spec["cgroups"]:
        join(each["root"])
    unshare(NAMESPACES)
    if spec["uptime"]:
        unshare(CLONE_NEWTIME)
        offsets = f"monotonic {spec['uptime']} 0\nboottime {spec['uptime']} 0\n"
        pathlib.Path("/proc/self/timens_offsets").write_text(offsets, encoding="utf-8")
    for each in spec["cgroups"]:
        join(each["join"])


def main():
    spec = json.load(sys.stdin)
    enter_namespaces(spec)
    failure, report = os.pipe()  # close-on-exec: end of file means that pid 1 is in place
    pid = os.fork()
    if pid == 0:
        try:
            become_init(spec)
        except OSError as error:
            os.write(report, str(error).encode())
            os._exit(1)
    os.close(report)
    message = os.read(failure, 4096).decode()
    if message:
        sys.exit(f"host {spec['hostname']}: {message}")
    print(pid)


if __name__ == "__main__":
    main()
