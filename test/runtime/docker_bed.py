# SPDX-License-Identifier: GPL-2.0-or-later
"""The runtime under a real Docker: a source on host a, dumped by runc, a target on host b, a driver as dmigrated."""

import json
import re
import subprocess
import time
import uuid

import bed as beds

ROOT = "/run/docker/runtime-runc/moby"
TICKS = "i=0; trap 'exit 4' TERM; while :; do i=$((i+1)); echo tick $i; usleep 20000; done"
VARIANTS = {
    "20.10-v1": {"docker": "20.10", "cgroup": "v1"},
    "20.10-v2": {"docker": "20.10", "cgroup": "v2"},
    "28-v1": {"docker": "28", "cgroup": "v1"},
    "28-v2": {"docker": "28", "cgroup": "v2"},
    "28-containerd-v2": {"docker": "28-containerd", "cgroup": "v2"},
    "28-runc13-v2": {"docker": "28-runc13", "cgroup": "v2"},
}


def register(bed, host):
    """What `dmigrate setup` does, and a restart of Docker."""
    path = host.path("/etc/docker/daemon.json")
    config = json.loads(path.read_text()) if path.exists() else {}
    config.setdefault("runtimes", {})["dmigrate"] = {"path": str(beds.WRAPPER)}
    path.write_text(json.dumps(config))
    bed.restart_docker(host.name)


class Driver(beds.Driver):
    """target-driver inside a host."""

    def __init__(self, host, identity, run_dir):  # pylint: disable=super-init-not-called
        self.host = host
        self.times = {}
        self._start(host.popen([beds.DRIVER, identity, run_dir, "runc", beds.CRIU_DIR], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True,
                               env={"DMIGRATE_LIBEXEC": str(beds.WRAPPER.parent)}))
        self.pid = None

    def kill(self):
        """SIGKILL to the driver itself, not only to what entered the host for it."""
        self.host.run(["sh", "-c", f"kill -9 $(pgrep -f '^{beds.DRIVER} ')"], check=False)
        self.process.kill()
        self.process.wait()


class Source:
    """A container on host a that was dumped and is gone; its images are where both hosts see them."""

    def __init__(self, bed, *options, command=("sh", "-c", TICKS), external=True, tty=False):
        host = bed.a
        self.images = bed.shared / f"images-{uuid.uuid4().hex[:8]}"
        self.name = f"source-{uuid.uuid4().hex[:8]}"
        self.id = host.docker("run", "-d", "--name", self.name, *options, "busybox", *command).strip()
        self.external = external
        self.tty_key = None
        self.hostname = self.id[:12]
        beds.wait_for(lambda: "tick 5" in host.docker("logs", self.name) or tty, "the source to tick")
        self.dump(host, tty)
        self.last_tick = int((re.findall(r"tick (\d+)", host.docker("logs", self.name)) or ["0"])[-1])
        host.docker("rm", "-f", "-v", self.name)

    def dump(self, host, tty):
        """runc checkpoint, as lib/criu does it."""
        pid = int(host.docker("inspect", "-f", "{{.State.Pid}}", self.id))
        conf = self.images.parent / f"{self.images.name}.conf"
        lines = ["network-lock skip"]
        if self.external:
            inode = host.output(["stat", "-L", "-c", "%i", f"/proc/{pid}/ns/net"]).strip()
            lines.append(f"external net[{inode}]:extRootNetNS")
        if tty:
            # The numbers of stat(2): the slave's device, and that of the devpts it lives in.
            inside = ["nsenter", "-t", str(pid), "-m", "stat", "-c"]
            major, minor = host.output([*inside, "%t %T", "/dev/console"]).split()
            dev = host.output([*inside, "%d", "/dev/pts"])
            self.tty_key = f"tty[{int(major, 16) * 256 + int(minor, 16):x}:{int(dev):x}]"
            lines += ["external mnt[/dev/pts]:/dev/pts", f"external {self.tty_key}"]
        conf.write_text("\n".join(lines) + "\n")
        self.images.mkdir()
        host.run(["env", f"PATH={beds.CRIU_DIR}:/usr/sbin:/usr/bin:/sbin:/bin", f"CRIU_CONFIG_FILE={conf}", "runc", "--root",
                  ROOT, "checkpoint", "--image-path", self.images, "--work-path", f"{self.images}-work",
                  "--tcp-established", "--ext-unix-sk", "--file-locks", self.id], stdin=subprocess.DEVNULL)


class Target:
    """A container on host b that waits for a restore, and its driver."""

    def __init__(self, bed, *options, command=("sh", "-c", TICKS)):
        self.bed, self.host = bed, bed.b
        self.name = f"target-{uuid.uuid4().hex[:8]}"
        self.id = self.host.docker("create", "--runtime", "dmigrate", "--name", self.name, *options, "busybox",
                                   *command).strip()
        self.run_dir = f"/run/dmigrate/{uuid.uuid4().hex[:16]}"
        self.host.run(["mkdir", "-p", self.run_dir])
        self.driver = Driver(self.host, self.id, self.run_dir)
        self.marks = {}

    def mark(self, name, start):
        """Milliseconds of a step, for the figures."""
        self.marks[name] = round((time.monotonic() - start) * 1000, 1)

    def start(self):
        """docker start, up to the waiting helper; returns P."""
        self.driver("new")
        start = time.monotonic()
        self.host.docker("start", self.name)
        self.driver("wait-started")
        self.mark("docker start", start)
        return self.driver("pid")

    def restore(self, source, stage="pre-resume"):
        """From the waiting helper to a stage of CRIU."""
        self.driver("vacate")
        self.continue_restore(source, stage)

    def continue_restore(self, source, stage="pre-resume"):
        """The same, vacated already."""
        options = ("external " if source.external else "") + (f"tty={source.tty_key}" if source.tty_key else "")
        self.driver(f"restore {source.images} {options}")
        start = time.monotonic()
        self.driver(f"serve {stage}")
        self.mark("restore up to pre-resume", start)

    def finish(self):
        """From pre-resume to an ordinary container."""
        start = time.monotonic()
        self.driver("release")
        self.driver("answer 0")
        self.driver("serve post-resume")
        self.mark("release and resume", start)
        self.driver("answer 0")
        self.driver("wait-restored")
        self.driver("commit")
        self.mark("commit", start)

    def inspect(self):
        """docker inspect as a dict."""
        return json.loads(self.host.docker("inspect", self.name))[0]

    def state(self):
        """Its State."""
        return self.inspect()["State"]

    def ticks(self):
        """Numbers in its log."""
        return [int(n) for n in re.findall(r"tick (\d+)", self.host.docker("logs", self.name))]

    def exec(self, *command):
        """docker exec."""
        return self.host.docker("exec", self.name, *command)

    def helper_pid(self):
        """The helper's pid in the host, or None."""
        found = self.host.run(["pgrep", "-f", f"dmigrate-runc .*start {self.id}"], check=False).stdout.split()
        return int(found[0]) if found else None

    def remains(self):
        """What is left on the host that should not be there after rm and forget."""
        return self.host.output(["sh", "-c", (
            f"ls {ROOT} /run/docker/runtime-runc -A | grep {self.id}; ls /run/dmigrate/target /var/lib/dmigrate/targets;"
            f"find /sys/fs/cgroup -type d -name '*{self.id}*'; grep {self.run_dir} /proc/self/mountinfo;"
            f"ps ax | grep -v grep | grep {self.id}; true")])

    def remove(self):
        """docker rm -f, and what dmigrated does afterwards."""
        self.host.docker("rm", "-f", "-v", self.name)
        self.driver("forget")

    def close(self):
        """Whatever state it is in."""
        self.driver.kill()
        self.host.run(["timeout", "60", "docker", "rm", "-f", "-v", self.name], check=False)
        self.host.run(["sh", "-c", "rm -rf /run/dmigrate/target/* /var/lib/dmigrate/targets/*"], check=False)

