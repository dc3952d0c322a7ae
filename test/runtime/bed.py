# SPDX-License-Identifier: GPL-2.0-or-later
"""Docker and containerd-shim as far as the runtime sees them, dmigrated, and a container to restore: without Docker."""

import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import threading
import time
import uuid

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "test"))

from testbed import apt, docker_versions, paths  # noqa: E402

BUILD = pathlib.Path(os.environ.get("DMIGRATE_BUILD", PROJECT / "build"))
WRAPPER = BUILD / "bin" / "dmigrate-runc"
DRIVER = BUILD / "test" / "support" / "target-driver"
SHIM = PROJECT / "test" / "support" / "shim.py"
CRIU_DIR = pathlib.Path(os.environ.get("DMIGRATE_TEST_CRIU", BUILD / "criu"))
# Seconds. The machine may be loaded; nothing here waits that long when it works.
PATIENCE = 30
COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /count; echo tick $i; usleep 20000; done"


def find_runc():
    """$DMIGRATE_TEST_RUNC, the machine's, or the one that the testbed unpacks for its Docker."""
    found = os.environ.get("DMIGRATE_TEST_RUNC") or shutil.which("runc")
    return found or str(docker_versions.prepare("20.10") / "usr/sbin/runc")


def find_busybox():
    """A static busybox, unpacked from Debian's package into the testbed's cache."""
    folder = paths.CACHE / "busybox-static"
    with paths.locked(paths.CACHE / "busybox-static.lock"):
        if not (folder / "bin" / "busybox").exists():
            apt.unpack("bookworm", ["busybox-static"], folder)
    return folder / "bin" / "busybox"


RUNC = find_runc() if os.geteuid() == 0 else "runc"


class Lines:
    """A process that talks in lines, read by a thread so that waits can end."""

    def __init__(self, argv, env=None, stderr=None):
        self._start(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
                                     env=env))

    def _start(self, process):
        self.process = process
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def send(self, line):
        """One line to its stdin."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def get(self, timeout=PATIENCE):
        """Its next line; None at its end."""
        return self.lines.get(timeout=timeout)

    def kill(self):
        """SIGKILL and wait."""
        self.process.kill()
        self.process.wait()


class Shim(Lines):
    """See test/support/shim.py."""

    def __init__(self, env):
        super().__init__(["/usr/bin/python3", str(SHIM)], env=env)
        self.events = []

    def call(self, name, *argv, stdio=None):
        """Run the wrapper; returns at once."""
        request = {"call": name, "argv": [str(WRAPPER), *map(str, argv)]}
        if stdio:
            request["stdio"] = stdio
        self.send(json.dumps(request))

    def wait(self, match, timeout=PATIENCE):
        """The first event, past or to come, for which match() is true; it is taken away."""
        deadline = time.monotonic() + timeout
        for event in self.events:
            if match(event):
                self.events.remove(event)
                return event
        while True:
            line = self.get(max(0.01, deadline - time.monotonic()))
            assert line is not None, "the shim ended"
            event = json.loads(line)
            if match(event):
                return event
            self.events.append(event)

    def called(self, name, timeout=PATIENCE):
        """End of a call: (exit code, output)."""
        event = self.wait(lambda e: e.get("called") == name, timeout)
        return event["status"], event["output"]

    def run(self, name, *argv, **options):
        """Call and wait."""
        self.call(name, *argv, **options)
        return self.called(name)

    def exit_of(self, pid, timeout=PATIENCE):
        """The exit code of a child that was not called: the container, or its tombstone."""
        return self.wait(lambda e: e.get("exit") == pid, timeout)["status"]

    def drain(self):
        """What has come so far, into .events."""
        while True:
            try:
                line = self.lines.get_nowait()
            except queue.Empty:
                return self.events
            self.events.append(json.loads(line))


class DriverError(Exception):
    """The driver answered "error"; .code is the errno."""

    def __init__(self, text):
        super().__init__(text)
        self.code = int(text.split()[0])


class Driver(Lines):
    """See test/support/target_driver.c."""

    def __init__(self, bed):
        super().__init__([str(DRIVER), bed.id, str(bed.run_dir), RUNC, str(CRIU_DIR)], env=bed.env)
        self.times = {}

    def ask(self, command):
        """Send without waiting."""
        self.send(command)

    def answer(self, timeout=PATIENCE):
        """Wait for the answer to ask(): its value."""
        line = self.get(timeout)
        assert line is not None, "the driver died"
        word, rest = line.split(" ", 1)
        if word == "error":
            raise DriverError(rest)
        self.last_ms = float(rest.split()[0])
        return int(rest.split()[1])

    def __call__(self, command):
        self.ask(command)
        value = self.answer()
        self.times[command] = self.last_ms
        return value


class Bed:
    """One target: bundle, runc root, shim, driver."""

    def __init__(self, folder, script=COUNTER, terminal=False, hooks=None):
        self.folder = pathlib.Path(folder)
        self.id = uuid.uuid4().hex
        self.root = self.folder / "runc" / "moby"
        self.bundle = self.folder / "bundle"
        self.run_dir = self.folder / "run" / "migration"
        self.log = self.bundle / "log.json"
        self.pid_file = self.bundle / "init.pid"
        for path in (self.root, self.bundle, self.run_dir):
            path.mkdir(parents=True)
        self.env = dict(os.environ, DMIGRATE_RUN_DIR=str(self.folder / "run"),
                        DMIGRATE_STATE_DIR=str(self.folder / "state"), DMIGRATE_RUNC=RUNC,
                        DMIGRATE_LIBEXEC=str(WRAPPER.parent))
        make_bundle(self.bundle, self.id, script, terminal, hooks)
        self.shim = Shim(self.env)
        self.driver = Driver(self)

    # ---- what containerd calls

    def globals(self):
        """Options before the command, as go-runc writes them."""
        return ["--root", self.root, "--log", self.log, "--log-format", "json"]

    def create(self, *more):
        """runc create as containerd calls it: (exit code, output)."""
        return self.shim.run("create", *self.globals(), "create", "--bundle", self.bundle, "--pid-file",
                             self.pid_file, *more, self.id, stdio="container")

    def runtime(self, command, *arguments):
        """Any other command on the container."""
        return self.shim.run(command, *self.globals(), command, *arguments, self.id)

    def signal(self, name):
        """runc kill: (exit code, output)."""
        return self.shim.run("kill", *self.globals(), "kill", self.id, name)

    def execute(self, *command):
        """runc exec."""
        return self.shim.run("exec", *self.globals(), "exec", self.id, *command)

    def error(self):
        """The last error in runc's log, which is what Docker shows."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return next((line["msg"] for line in reversed(lines) if line["level"] == "error"), None)

    def start_waiting(self):
        """Up to the waiting helper; returns P."""
        self.driver("new")
        assert self.create()[0] == 0, self.error()
        status, output = self.runtime("start")
        assert (status, output) == (0, ""), self.error()
        self.driver("wait-started")
        pid = self.driver("pid")
        assert int(self.pid_file.read_text()) == pid
        return pid

    # ---- looking

    def runc(self, *arguments):
        """The real runc, for facts."""
        return subprocess.run([RUNC, "--root", str(self.root), *map(str, arguments)], capture_output=True, text=True,
                              check=False, timeout=PATIENCE)

    def state(self):
        """What runc says of it, or None."""
        result = self.runc("state", self.id)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def count(self):
        """How far the restored counter is."""
        text = (self.bundle / "rootfs" / "count").read_text().strip()
        return int(text) if text else 0

    def cgroups(self):
        """Folders of its cgroups that exist."""
        return [str(path) for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/dmigtest/{self.id}")]

    def helper_pid(self):
        """The helper: the one who holds the lock on its file."""
        inode = os.stat(self.folder / "run" / "target" / f"{self.id}.helper").st_ino
        for line in pathlib.Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
                return int(words[4])
        return None

    def close(self):
        """End everything, whatever state it is in."""
        self.driver.kill()
        helper = self.helper_pid() if (self.folder / "run" / "target" / f"{self.id}.helper").exists() else None
        if helper:
            wait_for(lambda: self.helper_pid() is None, "the helper to end")
        self.runc("delete", "--force", self.id)
        self.shim.kill()
        for path in sorted(self.cgroups(), reverse=True):
            try:
                os.rmdir(path)
            except OSError:
                pass


def wait_for(condition, what, timeout=PATIENCE):
    """Poll: for things that have no event."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.005)


def make_bundle(bundle, identity, script, terminal=False, hooks=None):
    """A busybox container in its own namespaces and cgroup, as Docker writes it."""
    rootfs = bundle / "rootfs"
    for name in ("bin", "proc", "dev", "sys", "tmp", "mnt", "etc"):
        (rootfs / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(find_busybox(), rootfs / "bin" / "busybox")
    for name in ("sh", "sleep", "usleep", "cat", "echo", "tty", "stty", "kill"):
        if not (rootfs / "bin" / name).exists():
            os.symlink("busybox", rootfs / "bin" / name)
    real = bundle / "shared-real"
    real.mkdir(exist_ok=True)
    if not (bundle / "shared").exists():
        os.symlink(real, bundle / "shared")
    subprocess.run([RUNC, "spec", "--bundle", str(bundle)], check=True)
    config = json.loads((bundle / "config.json").read_text())
    config["process"].update({"args": ["/bin/sh", "-c", script], "terminal": terminal,
                              "rlimits": [{"type": "RLIMIT_CORE", "hard": 2**64 - 1, "soft": 2**64 - 1}]})
    config["root"] = {"path": "rootfs", "readonly": False}
    config["linux"]["cgroupsPath"] = f"/dmigtest/{identity}"
    config["mounts"].append({"destination": "/mnt", "source": str(bundle / "shared"), "type": "bind",
                             "options": ["rbind", "rw"]})
    if hooks:
        config["hooks"] = hooks
    (bundle / "config.json").write_text(json.dumps(config))


class Source:
    """The container that is moved: started by plain runc, dumped by our CRIU."""

    def __init__(self, folder, script=COUNTER):
        self.folder = pathlib.Path(folder)
        self.id = uuid.uuid4().hex
        self.bundle = self.folder / "source"
        self.images = self.folder / "images"
        self.images.mkdir()
        make_bundle(self.bundle, self.id, script)
        self.output = open(self.folder / "source.log", "wb")
        # descriptors.json must say "pipe": so the output goes through one.
        self.cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=self.output)
        self.root = self.folder / "source-runc"
        subprocess.run([RUNC, "--root", str(self.root), "run", "--detach", "--bundle", str(self.bundle), self.id],
                       stdin=subprocess.DEVNULL, stdout=self.cat.stdin, stderr=self.cat.stdin, check=True,
                       timeout=PATIENCE)

    def dump(self):
        """Checkpoint; the source ends. Returns the counter at that time."""
        wait_for(lambda: (self.bundle / "rootfs" / "count").exists() and
                 (self.bundle / "rootfs" / "count").read_text().strip() not in ("", "1", "2"), "the counter")
        conf = self.folder / "dump.conf"
        conf.write_text("network-lock skip\n")
        env = dict(os.environ, PATH=f"{CRIU_DIR}:{os.environ['PATH']}", CRIU_CONFIG_FILE=str(conf))
        subprocess.run([RUNC, "--root", str(self.root), "checkpoint", "--image-path", str(self.images), "--work-path",
                        str(self.folder / "dump-work"), "--tcp-established", "--ext-unix-sk", "--file-locks", self.id],
                       env=env, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        self.cat.stdin.close()
        self.cat.wait()
        # Not the file: it may have been dumped between truncation and write.
        return int((self.folder / "source.log").read_text().split()[-1])

    def close(self):
        """Whatever is left."""
        subprocess.run([RUNC, "--root", str(self.root), "delete", "--force", self.id], check=False,
                       capture_output=True, timeout=PATIENCE)
        if self.cat.poll() is None:
            self.cat.stdin.close()
            self.cat.wait()
        self.output.close()
        for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/dmigtest/{self.id}"):
            try:
                os.rmdir(path)
            except OSError:
                pass
