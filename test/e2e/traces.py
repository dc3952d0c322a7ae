# SPDX-License-Identifier: GPL-2.0-or-later
"""What a test may not leave on a host: compared before and after it."""

import pathlib
import time

import engine

# Docker, shims and the kernel take things down a moment after they said so
SETTLE_SECONDS = 10.0
POLL_SECONDS = 0.1


def take(pair):
    """{host: {kind: set of things}} as they are now."""
    return {host.name: _host(pair, host) for host in pair.bed.docker_hosts}


def _host(pair, host):
    return {
        "remains of dmigrate": set(pair.remains(host.name).split("\n")) - {""},
        "containers": engine.containers(host),
        "volumes": engine.volumes(host),
        "networks": engine.networks(host),
        "mounts": _mounts(host),
        "processes": _processes(host),
        "links": set(host.output(["sh", "-c", "ls /sys/class/net || true"]).split()),
        "cgroups": _cgroups(host),
    }


def _mounts(host):
    text = pathlib.Path(f"/proc/{host.pid}/mountinfo").read_text(encoding="utf-8", errors="replace")
    return {line.split()[4] for line in text.splitlines()}


def _processes(host):
    """Processes of the host's pid namespace, without the command that lists them."""
    lines = host.output(["ps", "-e", "-o", "pid=,ppid=,args="]).splitlines()
    found = set()
    for line in lines:
        pid, parent, words = line.split(None, 2)
        if parent != "0" and not words.startswith(("ps -e", "[")):
            found.add(f"{pid} {words[:120]}")
    return found


def _cgroups(host):
    found = set()
    for each in host.facts["cgroups"]:
        top = pathlib.Path(each["join"])
        found.update(str(path) for path in top.glob("docker/*") if path.is_dir())
        found.update(str(path) for path in top.glob("*/docker/*") if path.is_dir())
    return found


def new(before, after):
    """What is there now and was not before, as lines."""
    return [f"{host}: {kind}: {thing}" for host, kinds in after.items() for kind, things in kinds.items()
            for thing in sorted(things - before[host][kind])]


def wait_clean(pair, before):
    """Wait until nothing new is left; returns what stays."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := new(before, take(pair))) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return left
