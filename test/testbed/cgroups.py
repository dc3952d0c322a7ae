# SPDX-License-Identifier: GPL-2.0-or-later
"""Every host's own cgroup in every hierarchy of the machine.

The host gets a cgroup namespace, so that its cgroup is the root it sees: Docker's /docker/ID of one
host never meets another's, and CRIU dumps nothing but the host's own.
"""

import dataclasses
import os
import pathlib
import time

from . import paths

PREFIX = "dmigrate-testbed"
# a cgroup is busy for a moment after its last task was reaped; v1 has no event for that
REMOVE_TIMEOUT = 5.0


@dataclasses.dataclass(frozen=True)
class Hierarchy:
    """One mounted cgroup hierarchy of the machine."""

    mount: str  # where the machine has it
    kind: str  # "cgroup" (v1) or "cgroup2"
    options: str  # v1: what mounts the same one again ("cpu", "none,name=systemd")
    base: str  # directory that the hosts' cgroups go into


def hierarchies():
    """All hierarchies of this machine, each where it was mounted first: CRIU mounts them again."""
    own = _own_paths()
    found, seen = [], set()
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, tail = line.split(" - ")
        device, root, mount = fields.split()[2:5]
        kind, _, options = tail.split()
        if device in seen:
            continue
        seen.add(device)
        if kind == "cgroup2":
            # the real root alone may have both tasks and controllers for its children
            found.append(Hierarchy(mount, kind, "", mount))
        elif kind == "cgroup":
            key = _hierarchy_key(options)
            relative = os.path.relpath(own.get(key, root), root)
            base = os.path.normpath(os.path.join(mount, relative))
            spec = f"none,{key}" if key.startswith("name=") else key
            found.append(Hierarchy(mount, kind, spec, base))
    return found


def _own_paths():
    own = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, key, path = line.split(":", 2)
        own[key] = path
    return own


def _hierarchy_key(super_options):
    known = set(super_options.split(","))
    return next((key for key in _own_paths() if key and set(key.split(",")) <= known), "")


def create(testbed, host, mode):
    """Make the host's cgroups. Returns a list of {root, join, kind, options, name}: root is the
    cgroup that becomes the host's "/", join the one its processes go into."""
    if mode == "v1" and not has_v1():
        raise paths.TestbedError("this machine has no cgroup v1 hierarchies with controllers")
    return [_create_in(hierarchy, f"{PREFIX}.{testbed}.{host}", mode)
            for hierarchy in hierarchies()]


def has_v1():
    """Whether a v1 host is possible: systemd's named hierarchy alone does not count."""
    return any(each.kind == "cgroup" and "name=" not in each.options for each in hierarchies())


def _create_in(hierarchy, name, mode):
    root = pathlib.Path(hierarchy.base) / name
    root.mkdir(exist_ok=True)
    join = root
    if hierarchy.kind == "cgroup2":
        if mode == "v2":
            # controllers go to children of a cgroup without tasks of its own only
            join = root / "system"
            join.mkdir(exist_ok=True)
            _enable_controllers(pathlib.Path(hierarchy.mount))
    elif "cpuset" in hierarchy.options.split(","):
        _inherit_cpuset(root)
    return {"root": str(root), "join": str(join), "kind": hierarchy.kind,
            "options": hierarchy.options, "name": os.path.basename(hierarchy.mount)}


def _enable_controllers(directory):
    for controller in (directory / "cgroup.controllers").read_text(encoding="utf-8").split():
        try:
            (directory / "cgroup.subtree_control").write_text(f"+{controller}", encoding="utf-8")
        except OSError:
            pass  # cpu, while real-time tasks are outside the root: the host has one less


def _inherit_cpuset(directory):
    for name in ("cpuset.cpus", "cpuset.mems"):
        value = (directory.parent / name).read_text(encoding="utf-8").strip()
        (directory / name).write_text(value, encoding="utf-8")


def find(testbed=None):
    """Host cgroups that exist on the machine: of one testbed or of all."""
    start = f"{PREFIX}.{testbed}." if testbed else f"{PREFIX}."
    found = []
    for mount in {each.mount for each in hierarchies()}:
        for directory, children, _ in os.walk(mount):
            mine = [child for child in children if child.startswith(start)]
            found += [pathlib.Path(directory) / child for child in mine]
            children[:] = [child for child in children if not child.startswith(PREFIX)]
    return sorted(found)


def name_of(directory):
    """(testbed, host) a cgroup that find() returned belongs to."""
    return pathlib.Path(directory).name[len(PREFIX) + 1:].rsplit(".", 1)


def processes(directory):
    """Pids of a cgroup and all below it."""
    pids = set()
    for folder, _, _ in os.walk(directory):
        try:
            text = pathlib.Path(folder, "cgroup.procs").read_text(encoding="utf-8")
        except OSError:
            continue
        pids.update(int(pid) for pid in text.split())
    pids.discard(0)
    return pids


def thaw(directory):
    """Let frozen tasks go on: they do not die of SIGKILL while a v1 freezer holds them."""
    for folder, _, files in os.walk(directory, topdown=False):
        for name, value in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            if name in files:
                try:
                    pathlib.Path(folder, name).write_text(value, encoding="utf-8")
                except OSError:
                    pass  # it went away with its last task


def remove(directory):
    """Remove a cgroup and all below it; its processes are dead."""
    for folder, _, _ in os.walk(directory, topdown=False):
        deadline = time.monotonic() + REMOVE_TIMEOUT
        while True:
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise paths.TestbedError(f"cannot remove cgroup {folder}: {error}") from error
                time.sleep(0.01)
            else:
                break
