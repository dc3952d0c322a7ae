# SPDX-License-Identifier: GPL-2.0-or-later
"""A pair of Docker hosts with Dmigrate set up on both, as two machines of a user would be."""

import json
import os
import pathlib
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / "test"), str(PROJECT / "test/e2e")]

import engine  # noqa: E402
import testbed  # noqa: E402

BUILD = pathlib.Path(os.environ.get("DMIGRATE_BUILD", PROJECT / "build"))
BIN = BUILD / "bin"
ADDRESS = {"a": "10.77.0.1", "b": "10.77.0.2"}
LAN_ADDRESS = "10.88.0.50"
CLIENT_ADDRESS = "10.88.0.200"
MOVE_TIMEOUT = 120

# name -> how the hosts are made (options of Testbed.up)
VARIANTS = {
    "20.10-v1": {"docker": "20.10", "cgroup": "v1"},
    "28-v2": {"docker": "28", "cgroup": "v2"},
    "28-containerd-v2": {"docker": "28-containerd", "cgroup": "v2"},
    # not yet: from cgroup v1 to v2, where CRIU makes the source's v1 cgroups
    "20.10-v1-to-28-containerd-v1": {"docker": "20.10", "cgroup": "v1",
                                     "docker_b": "28-containerd", "cgroup_b": "v1"},
}


class MoveFailed(Exception):
    """A migration that did not end well; .report and .code say how."""

    def __init__(self, code, report, stderr):
        super().__init__(f"exit {code}: {stderr.strip()} {json.dumps(report)[:600]}")
        self.code, self.report, self.stderr = code, report, stderr


class Pair:
    """Testbed plus the programs under test."""

    def __init__(self, bed):
        self.bed = bed
        self.key = bed.shared / "dmigrate.key"
        self.listeners = {}
        self.clients = []
        self.www = bed.shared / "www"  # what tests may bind at both hosts

    def set_up(self):
        """What a user does once per host: register the runtime, share a key, start the listener."""
        subprocess.run([BIN / "dmigrate", "key", "new", self.key], check=True, capture_output=True)
        for host in self.bed.docker_hosts:
            self.dmigrate(host.name, "setup", "--quiet")
            self.listen(host.name)
        self.bed.network("lan")

    def listen(self, name, env=None):
        """Start the listener of a host."""
        self.listeners[name] = self.bed.host(name).popen(
            [BIN / "dmigrated", "--listen", "--key", self.key, "--verbose", "--allow", f"bind={self.www}"], env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: self.bed.host(name).run(
            ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7788"], check=False).returncode == 0,
            f"dmigrated --listen on {name}")

    def stop_listening(self, name):
        """End the listener of a host."""
        listener = self.listeners.pop(name)
        listener.kill()
        listener.wait()

    def stop(self):
        """End the listeners."""
        for name in list(self.listeners):
            self.stop_listening(name)

    def dmigrate(self, host, *arguments, check=True, timeout=MOVE_TIMEOUT):
        """Run the command on a host."""
        return self.bed.host(host).run(["timeout", timeout, BIN / "dmigrate", *arguments],
                                       check=check)

    def command(self, source, container, *options, target=None):
        """Arguments of a migration from one host to the other."""
        destination = target or f"tls://{ADDRESS[other(source)]}:7788"
        key = [] if destination.startswith("ssh:") else ["--key", self.key]
        return [BIN / "dmigrate", "migrate", container, destination, *key, "--json", "--verbose", *options]

    def move(self, source, container, *options, target=None):
        """Migrate; returns the report. MoveFailed otherwise."""
        command = ["timeout", MOVE_TIMEOUT, *self.command(source, container, *options, target=target)]
        result = self.bed.host(source).run(command, check=False)
        try:
            report = json.loads(result.stdout)
        except ValueError:
            report = {}
        if result.returncode:
            raise MoveFailed(result.returncode, report, result.stderr + self.log(source))
        return report

    def log(self, host, lines=60):
        """The last lines of dmigrated's log on a host."""
        path = self.bed.host(host).path("/var/lib/dmigrate/log")
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def run(self, host, name, image, *command, options=(), address=LAN_ADDRESS):
        """docker run -d on the joined network."""
        network = ["--network", "lan", "--ip", address] if address else []
        made = self.bed.host(host).docker("run", "-d", "--name", name, *network, *options, image, *command)
        pid = self.inspect(host, name)["State"]["Pid"] if address else 0
        if pid:
            self.show_address(host, pid)
        return made

    def show_address(self, host, pid):
        """Let a new container send a first frame. An earlier one at the other host may have had its address, and with
        Docker 20.10 its MAC address too: the switch would send there until it forgets."""
        frame = f"echo > /dev/udp/{CLIENT_ADDRESS}/9"  # asks who has the client's address, and that is broadcast
        self.bed.host(host).run(["nsenter", "-t", pid, "-n", "bash", "-c", frame], check=False)

    def inspect(self, host, name):
        """docker inspect as a dict."""
        found = engine.inspect(self.bed.host(host), name)
        assert found is not None, f"no container {name} on {host}"
        return found

    def is_running(self, host, name):
        """Whether the container runs there."""
        found = engine.inspect(self.bed.host(host), name)
        return found is not None and found["State"]["Running"]

    def exists(self, host, name):
        """Whether Docker knows the name there."""
        return engine.inspect(self.bed.host(host), name) is not None

    def remains(self, host):
        """What Dmigrate left on a host where nothing of it should be: empty when clean."""
        return self.bed.host(host).output(["sh", "-c", (
            "ls /run/dmigrate 2>/dev/null | grep -v '^target$'; ls /run/dmigrate/target 2>/dev/null;"
            "ls /var/lib/dmigrate/targets 2>/dev/null;"
            "nft list tables 2>/dev/null | grep dmigrate; true")])


def other(host):
    """The other of the two hosts."""
    return "b" if host == "a" else "a"


def wait_for(condition, what, seconds=20.0, step=0.02):
    """Poll for something that has no event to wait for (a foreign program's state)."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen within {seconds} s: {what}")
        time.sleep(step)
