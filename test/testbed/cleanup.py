# SPDX-License-Identifier: GPL-2.0-or-later
"""Take testbeds down, and find what is left of them.

All but files and cgroups lives in the hosts' namespaces and ends with their processes, so the
cgroups are what finds everything, whatever has crashed before.
"""

import os
import pathlib
import re
import shutil

from . import cgroups, hosts, paths

# a process that forks while it is being listed is found by the next round
KILL_ROUNDS = 10
# ports of the switch and uplinks of a host, were one to end up in the machine's own namespace
LINK_NAME = re.compile("(a|b|client)-[a-z][a-z0-9]{0,5}(-[d01])?|br-lan|lan-up|mgmt")


def lock_file(name):
    """Held while a testbed comes up, changes or goes down."""
    return paths.STATE / f"{name}.lock"


def known():
    """Names of all testbeds of which anything is there."""
    names = {path.stem if path.suffix == ".lock" else path.name for path in _state_entries()}
    names |= {cgroups.name_of(directory)[0] for directory in cgroups.find()}
    return sorted(names)


def _state_entries():
    return sorted(paths.STATE.iterdir()) if paths.STATE.exists() else []


def down(name):
    """Take down a testbed, whether it is whole or what a crash left of one."""
    with paths.locked(lock_file(name)):
        remove(name)
        lock_file(name).unlink()
    try:
        paths.STATE.rmdir()
    except OSError:
        pass  # another testbed is there


def remove(name):
    """The part of down that runs under the lock."""
    found = cgroups.find(name)
    _kill_all(name, found)
    for directory in found:
        cgroups.remove(directory)
    if (paths.STATE / name).exists():
        shutil.rmtree(paths.STATE / name)


def _kill_all(name, directories):
    for _ in range(KILL_ROUNDS):
        pids = set().union(*map(cgroups.processes, directories)) | _inhabitants(name)
        if not pids:
            return
        handles = hosts.kill(pids)
        for directory in directories:
            cgroups.thaw(directory)
        if not hosts.wait_gone(handles):
            break
    raise paths.TestbedError(f"testbed {name}: processes that do not die: {sorted(pids)}")


def _inhabitants(name=None):
    """Processes in a mount namespace that shows a testbed's directories: somebody's nsenter."""
    place = _place(name)
    own, seen, found = os.readlink("/proc/self/ns/mnt"), {}, set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            namespace = os.readlink(process / "ns/mnt")
            if namespace == own:
                continue
            if namespace not in seen:
                text = (process / "mountinfo").read_text(encoding="utf-8")
                seen[namespace] = f"upperdir={place}" in text
        except OSError:
            continue  # it ended
        if seen[namespace]:
            found.add(int(process.name))
    return found


def _place(name):
    return f"{paths.STATE / name}/" if name else f"{paths.STATE}/"


def leftovers(name=None):
    """Lines that name everything there is of a testbed, or of any."""
    directories = cgroups.find(name)
    found = [f"directory {path}" for path in _state_entries()
             if name is None or path.name in (name, lock_file(name).name)]
    found += [f"cgroup {directory}" for directory in directories]
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    found += [f"mount {line.split()[4]}" for line in mounts if _place(name) in line]
    pids = _inhabitants(name).union(*map(cgroups.processes, directories))
    if name is None:
        pids |= _native_processes()
        links = sorted(path.name for path in pathlib.Path("/sys/class/net").iterdir())
        found += [f"link {link}" for link in links if LINK_NAME.fullmatch(link)]
    found += [f"process {pid}: {_command_line(pid)}" for pid in sorted(pids)]
    return found


def _native_processes():
    """Processes that run one of the testbed's own programs."""
    found = set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "exe").startswith(f"{paths.CACHE / 'native'}/"):
                found.add(int(process.name))
        except OSError:
            continue  # it ended, or it is a kernel thread
    return found


def _command_line(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "(ended)"
    return text.replace(b"\0", b" ").decode(errors="replace").strip()[:100]
