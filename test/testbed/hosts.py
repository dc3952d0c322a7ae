# SPDX-License-Identifier: GPL-2.0-or-later
"""A host: a set of namespaces with a pid 1, its own cgroups and its own directories."""

import json
import os
import pathlib
import select
import signal
import subprocess
import sys

from . import cgroups, native, paths

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# the caller's; on the host they would point at the machine's Docker, session or temporary files
FOREIGN_VARIABLES = ("DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT", "TMPDIR", "NOTIFY_SOCKET",
                     "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "CRIU_CONFIG_FILE")
# directories of a Docker host that are on the state directory's ext4
PRIVATE_DIRECTORIES = ("/var/lib/docker", "/var/lib/containerd", "/var/lib/dmigrate", "/etc/docker",
                       "/var/log")
KILL_TIMEOUT = 10.0


class Host:
    """One host of a running testbed. Its facts live in the testbed's state file."""

    def __init__(self, testbed, name, facts):
        self.testbed = testbed  # name of the testbed
        self.name = name
        self.facts = facts  # {pid, start, cgroups, ...}

    def __repr__(self):
        return f"<Host {self.testbed}/{self.name}>"

    @property
    def pid(self):
        """Pid 1 of the host, as the machine numbers it."""
        return self.facts["pid"]

    @property
    def state(self):
        """The host's directory on the machine."""
        return paths.STATE / self.testbed / self.name

    def path(self, inside):
        """How the machine reaches a path of the host."""
        return pathlib.Path(f"/proc/{self.pid}/root") / str(inside).lstrip("/")

    def alive(self):
        """Whether pid 1 is there (and not another process that got its number)."""
        return start_time(self.pid) == self.facts["start"]

    def command(self, argv, daemon=False):
        """The command line that runs argv on this host."""
        joins = [each["join"] for each in self.facts["cgroups"]]
        return [native.program("enter"), *(["-d"] if daemon else []), str(self.pid), *joins,
                "--", *map(str, argv)]

    def environment(self, extra=None):
        """The caller's environment, as root of the host would have it."""
        env = {key: value for key, value in os.environ.items() if key not in FOREIGN_VARIABLES}
        env.update(PATH=PATH, HOME="/root", USER="root", LOGNAME="root", **(extra or {}))
        return env

    def run(self, argv, check=True, env=None, **options):
        """subprocess.run on the host; output is captured as text unless told otherwise."""
        if "stdout" not in options and "capture_output" not in options:
            options["capture_output"] = "stderr" not in options
        options.setdefault("text", True)
        result = subprocess.run(self.command(argv), env=self.environment(env), check=False,
                                **options)
        if check and result.returncode:
            shown = result.stderr or result.stdout or ""
            raise paths.TestbedError(f"{self.name}: {' '.join(map(str, argv))}: "
                                     f"exit {result.returncode}: {str(shown).strip()}")
        return result

    def output(self, argv, **options):
        """Standard output of a command on the host, without the last newline."""
        return self.run(argv, **options).stdout.rstrip("\n")

    def popen(self, argv, env=None, **options):
        """subprocess.Popen on the host; killing it kills the command."""
        return subprocess.Popen(self.command(argv), env=self.environment(env), **options)

    def docker(self, *arguments, **options):
        """Standard output of a docker command on the host."""
        return self.output(["docker", *arguments], **options)


def start_time(pid):
    """When a process started (clock ticks since boot), None if there is none."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])


def start(testbed, name, *, docker=None, cgroup_mode="v1", uptime=0, files=None):
    """Start a host's namespaces; docker is the directory of its version, None for a plain host.
    Returns the facts that Host needs."""
    state = paths.STATE / testbed / name
    state.mkdir(parents=True, exist_ok=True)
    made = cgroups.create(testbed, name, cgroup_mode)
    spec = {
        "hostname": name, "state": str(state), "cgroups": made, "cgroup_mode": cgroup_mode,
        "docker": str(docker) if docker else None, "uptime": uptime, "files": files or {},
        "private": PRIVATE_DIRECTORIES if docker else [],
        "tmpfs": ["/run", "/tmp", "/dev/shm"] if docker else ["/run"],
        "keep": [str(paths.PROJECT), str(paths.CACHE), str(paths.STATE)],
        "init": native.program("init"),
    }
    boot = subprocess.run([sys.executable, "-IS", paths.SOURCE / "boot.py"], input=json.dumps(spec),
                          capture_output=True, text=True, check=False)
    if boot.returncode:
        raise paths.TestbedError(boot.stderr.strip())
    pid = int(boot.stdout)
    return {"pid": pid, "start": start_time(pid), "cgroups": made}


def kill(pids):
    """SIGKILL processes and wait until they are gone. Killing a pid 1 takes its namespace along."""
    handles = []
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            handles.append(handle)
        except ProcessLookupError:
            continue
    return handles


def wait_gone(handles):
    """Wait for killed processes; returns False if one is still there."""
    gone = True
    for handle in handles:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        gone &= bool(poll.poll(KILL_TIMEOUT * 1000))
        os.close(handle)
    return gone
