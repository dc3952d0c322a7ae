# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis that lives on one of two hosts, with a client that never stops asking, and faults to try on it."""

import glob
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import pair as pairs  # noqa: E402
import processes  # noqa: E402
from client import Client  # noqa: E402
from pair import BIN, LAN_ADDRESS, other, wait_for  # noqa: E402

# how long a worker takes to reach a fault point on a busy machine
REACH = 60
# how long a host may take to put everything back after a failure was told
CLEAN = 20
LAN_CLIENT = "10.88.0.200"
POLICY = "unless-stopped"
# what a host has that a migration could leave behind; each line is one thing
INVENTORY = r"""
docker ps -aq --no-trunc | sed 's/^/container /'
docker network ls --format '{{.Name}}' | sed 's/^/network /'
docker volume ls -q | sed 's/^/volume /'
docker images -aq --no-trunc | sort -u | sed 's/^/image /'
cut -d' ' -f5 /proc/self/mountinfo | sed 's/^/mount /'
nft list tables 2>/dev/null | sed 's/^/nft /'
find /sys/fs/cgroup -type d \( -path '*docker/*' -o -name '*dmigrate*' \) 2>/dev/null | sed 's/^/cgroup /'
find /run/dmigrate /var/lib/dmigrate/targets -mindepth 1 2>/dev/null | grep -v '^/run/dmigrate/target$' | sed 's/^/file /'
find /run/docker/runtime* /run/containerd/runc -mindepth 1 -maxdepth 2 2>/dev/null | sed 's/^/file /'
find /run -maxdepth 3 -name '*dmigrate-*' 2>/dev/null | sed 's/^/file /'
"""


class Rig:
    """Two hosts, Redis on one of them (self.home), its client."""

    def __init__(self, variant, name):
        self.bed = pairs.testbed.Testbed.up(name=name, **pairs.VARIANTS[variant])
        self.pair = pairs.Pair(self.bed)
        self.home = "a"
        self.client = None
        self.armed = {"a": "", "b": ""}
        self.measured = []  # (case, seconds until the source served)
        try:
            self.pair.set_up()
            self.bed.image("redis")
            for host in self.bed.docker_hosts:  # folders that Docker makes with its first container
                host.docker("run", "--rm", "redis", "true")
        except BaseException:
            self.down()
            raise

    def down(self):
        """Everything away."""
        if self.client:
            self.client.stop()
        self.pair.stop()
        self.bed.down()

    # ---- the workload

    def ensure(self):
        """Redis runs with its client: after a failed test both are new."""
        if self.client and self.client.lines[-1] and self.pair.is_running(self.home, "redis"):
            return
        self.reset()
        self.home = "a"
        self.pair.run("a", "redis", "redis", options=("--restart", POLICY))
        wait_for(lambda: "PONG" in self.bed.a.run(["docker", "exec", "redis", "redis-cli", "ping"], check=False).stdout,
                 "redis answers")
        # a frame from it: the switch may still know its address at the other host
        self.bed.a.run(["docker", "exec", "redis", "redis-cli", "-h", LAN_CLIENT, "-p", "1", "ping"], check=False)
        self.client = Client(self.pair, LAN_ADDRESS)

    def reset(self):
        """Nothing runs anywhere."""
        if self.client:
            self.client.stop()
            self.client = None
        for host in self.bed.docker_hosts:
            found = processes.roles(host)
            processes.kill(found["both"] + found["criu"] + found["runc"] + found["command"])
            self.bed.heal(host.name)
            self.arm(host.name, "")
            self.pair.dmigrate(host.name, "recover", check=False)
            host.run(["nft", "flush", "ruleset", "bridge"], check=False)
            names = host.docker("ps", "-aq").split()
            if names:
                host.run(["docker", "rm", "-f", "-v", *names], check=False)

    @property
    def source(self):
        """The host Redis lives on."""
        return self.bed.host(self.home)

    @property
    def target(self):
        """The other host."""
        return self.bed.host(other(self.home))

    # ---- faults

    def arm(self, name, fault):
        """A listener with this DMIGRATE_FAULT on that host; "" for none."""
        if self.armed[name] == fault:
            return
        listener = self.pair.listeners.pop(name)
        listener.kill()
        listener.wait()
        # the relay that entered the host is gone; dmigrated itself is pid-namespace local and ends with it
        processes.kill([each for each in processes.of_host(self.bed.host(name)).values()
                        if each.name == "dmigrated" and "--listen" in each.arguments])
        self.pair.listen(name, env={"DMIGRATE_FAULT": fault} if fault else None)
        self.armed[name] = fault

    def start(self, fault="", options=()):
        """Start a migration away from home with a fault "SIDE:POINT:ACTION"; returns the Popen of the command."""
        self.release("source")  # what a migration that was killed at its point left
        self.release("destination")
        self.arm(self.target.name, fault if fault.startswith("destination") else "")
        command = self.pair.command(self.home, "redis", *options)
        return self.source.popen(command, env={"DMIGRATE_FAULT": fault} if fault else None,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def copies(self):
        """The container's processes on both hosts, dead ones too."""
        pids = [int(each) for each in os.listdir("/proc") if each.isdigit()]
        found = [processes.Process(pid) for pid in pids]
        return [each for each in found if each.name == "redis-server"]

    def markers(self, side):
        """The files of workers that wait at their fault point."""
        host = self.source if side == "source" else self.target
        return glob.glob(str(host.path("/run/dmigrate/*/fault")))

    def reached(self, side, command):
        """Wait until that side's worker is at its fault point; returns its migration's id."""
        def there():
            if command.poll() is not None:
                raise AssertionError(f"ended before the fault point: {command.communicate()}")
            return self.markers(side)
        wait_for(there, f"the {side} is at the fault point", REACH, 0.002)
        return self.markers(side)[0].split("/")[-2]

    def release(self, side):
        """Let the worker go on."""
        for path in self.markers(side):
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass

    def hit(self, victim):
        """Do it: "source-worker", "destination-criu", "link", "command". Returns when."""
        if victim == "link":
            before = time.monotonic()
            self.bed.cut(self.target.name)
            return before
        side, _, role = victim.rpartition("-")
        host = self.target if side == "destination" else self.source
        found = processes.roles(host)[role]
        assert found, f"no {victim} to kill"
        now = time.monotonic()
        processes.kill(found)
        return now

    def finish(self, command, timeout=90):
        """The command's exit code, report and complaints."""
        out, errors = command.communicate(timeout=timeout)
        try:
            report = json.loads(out)
        except ValueError:
            report = {}
        return command.returncode, report, errors

    # ---- what must be true afterwards

    def inventory(self, host):
        """What there is on a host, as a set of lines."""
        lines = set(host.output(["sh", "-c", INVENTORY]).splitlines())
        mine = ("dmigrated", "dmigrate", "dmigrate-runc", "runc", "criu", "containerd-shim")
        return lines | {f"process {each}" for each in processes.of_host(host).values()
                        if each.name.startswith(mine) and "--listen" not in each.arguments}

    def clean(self, host, before):
        """Nothing on the host that was not there before."""
        def same():
            return self.inventory(host) - before == set()
        try:
            wait_for(same, "clean", CLEAN, 0.1)
        except AssertionError:
            left = sorted(self.inventory(host) - before)
            raise AssertionError(f"left on {host.name}: {left}") from None

    def serves_at_home(self, before):
        """The source is as it was: its policy, its tasks, its network."""
        facts = self.pair.inspect(self.home, "redis")
        assert facts["State"]["Running"] and not facts["State"]["Paused"]
        assert facts["HostConfig"]["RestartPolicy"]["Name"] == POLICY
        self.client.check()
        self.clean(self.source, before)
        assert not self.pair.exists(self.target.name, "redis")

    def move(self):
        """A migration without faults works, and the client does not notice."""
        self.bed.heal("a")
        self.bed.heal("b")
        self.arm(self.target.name, "")
        report = self.pair.move(self.home, "redis")
        assert report["result"] == "ok"
        self.home = other(self.home)
        self.moved()

    def moved(self):
        """Redis runs at (the new) home only, with its policy, its client connected."""
        assert self.pair.is_running(self.home, "redis")
        wait_for(lambda: not self.pair.is_running(self.target.name, "redis"), "the source's copy ends")
        self.client.first_after(time.monotonic(), 10)
        wait_for(lambda: self.pair.inspect(self.home, "redis")["HostConfig"]["RestartPolicy"]["Name"] == POLICY,
                 "restart policy")

    def logs(self):
        """Both hosts' logs, for a failed test."""
        return "\n".join(f"--- {host.name}\n{self.pair.log(host.name, 80)}" for host in self.bed.docker_hosts)
