# SPDX-License-Identifier: GPL-2.0-or-later
"""Which processes a migration consists of, how to kill each, and whether a copy of the container runs."""

import os
import pathlib
import signal
import threading
import time

# seconds between two looks at the copies
LOOK = 0.005
FIND = 0.1
# a killed task still runs through its exit: what is gone this soon did not run
DYING = 0.05
# on cgroup v2 a frozen task whose tracer dies goes from one stop to the other, once, inside the kernel; one that runs
# is seen again and again
RUNNING = 0.1


def _read(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


class Process:
    """One process: as the machine numbers it."""

    def __init__(self, pid):
        self.pid = pid
        stat = _read(pid, "stat").rpartition(")")[2].split()
        self.state, self.parent = (stat[0], int(stat[1])) if stat else ("X", 0)
        self.name = _read(pid, "comm").strip()
        self.arguments = _read(pid, "cmdline").split("\0")

    def __repr__(self):
        return f"{self.pid} {self.name} {' '.join(self.arguments)[:80]}"


def of_host(host):
    """All live processes in a host's own pid namespace, {pid: Process}."""
    namespace = _namespace(host.pid)
    pids = [int(each) for each in os.listdir("/proc") if each.isdigit()]
    found = [Process(pid) for pid in pids if _namespace(pid) == namespace]
    return {each.pid: each for each in found if each.state not in "ZX"}


def _with(processes, name, word):
    return [each for each in processes.values() if each.name == name and word in each.arguments]


def _children(processes, parents, name):
    pids = {each.pid for each in parents}
    return [each for each in processes.values() if each.parent in pids and each.name == name]


def roles(host):
    """What of Dmigrate runs on a host: {role: [Process]}."""
    everything = of_host(host)
    daemons = {pid: each for pid, each in everything.items() if each.name == "dmigrated"}
    listeners = [each for each in _with(daemons, "dmigrated", "--listen") if each.parent not in daemons]
    sources = [each for each in _with(daemons, "dmigrated", "--source") if each.parent not in daemons]
    targets = _children(daemons, listeners, "dmigrated")
    supervisors = sources + targets
    workers = _children(daemons, supervisors, "dmigrated")
    return {
        "supervisor": supervisors, "worker": workers, "both": supervisors + workers,
        "runc": [each for each in everything.values() if each.name == "runc"
                 and {"checkpoint", "restore"} & set(each.arguments)],
        "criu": [each for each in everything.values() if each.name == "criu"],
        "helper": [each for each in everything.values() if each.name == "dmigrate-helper"],
        "command": [each for each in everything.values() if each.name == "dmigrate"],
    }


def kill(processes):
    """SIGKILL; the first listed first."""
    for each in processes:
        try:
            os.kill(each.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Copies:
    """Watches the container's processes on both hosts: which of them got CPU time, and when."""

    def __init__(self, pair, name):
        self.pair, self.name = pair, name
        self.namespaces = {host.name: _namespace(host.pid) for host in pair.bed.docker_hosts}
        self.samples = []  # (time, host, pid, nanoseconds on a CPU)
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _find(self):
        """{pid: host} of the container's processes; their host is that of the shim they descend from."""
        found = {}
        for pid in (int(each) for each in os.listdir("/proc") if each.isdigit()):
            if _read(pid, "comm").strip() != self.name:
                continue
            parent = pid
            while parent > 1 and _namespace(parent) not in self.namespaces.values():
                parent = Process(parent).parent
            for host, namespace in self.namespaces.items():
                if parent > 1 and _namespace(parent) == namespace:
                    found[pid] = host
        return found

    def _watch(self):
        found, looked = {}, 0.0
        while not self.ending.wait(LOOK):
            now = time.monotonic()
            if now - looked > FIND:
                found, looked = self._find(), now
            for pid, host in found.items():
                text = _read(pid, "schedstat").split()
                if text and Process(pid).state not in "ZX":
                    self.samples.append((time.monotonic(), host, pid, int(text[0])))

    def ran(self, since):
        """Hosts whose copy ran after that moment (and not only to its end)."""
        self.ending.set()
        self.thread.join()
        hosts = {}
        for pid in {sample[2] for sample in self.samples}:
            mine = [sample for sample in self.samples if sample[2] == pid and sample[0] >= since]
            for before, after in zip(mine, mine[1:]):
                if after[3] > before[3] and mine[-1][0] - after[0] > DYING:
                    hosts.setdefault(after[1], []).append(after[0] - since)
        return {host: when for host, when in hosts.items() if max(when) - min(when) > RUNNING}
