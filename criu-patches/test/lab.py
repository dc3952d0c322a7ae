# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cases in `run` need: a victim, a notify socket, a CRIU on a leash."""
import mmap
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

# Everything here takes a fraction of a second; a loaded machine gets this many
TIMEOUT = 20
# How long a task that could run is given to show it
QUIET = 0.05
SLOTS = 4

REQ = struct.Struct("<II32sii")
RESP = struct.Struct("<IiiI")
MAGIC = 0x314E5243


def answer(ret=0, value=0):
    return RESP.pack(MAGIC, ret, value, 0)


def wait_for(what, condition):
    end = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"timeout: {what}")
        time.sleep(0.002)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except FileNotFoundError:
        return []


def reap():
    """We are pid 1: what lost its parent is ours, alive or dead."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class Victim:
    """A process tree in pid and net namespaces of its own, see victim.c."""

    def __init__(self, binary, folder, uid=0, prepare=None):
        self.path = os.path.join(folder, "beats")
        with open(self.path, "wb") as f:
            f.truncate(mmap.PAGESIZE)
        with open(self.path, "rb") as f:
            self.map = mmap.mmap(f.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ)
        null = subprocess.DEVNULL
        command = [binary, self.path, str(uid)]
        if prepare:
            # In a root of its own, the folder, in which prepare has made some mounts
            shutil.copy(binary, f"{folder}/victim")
            command = ["sh", "-ec", f"cd {folder}\n{prepare}\nexec {binary} /beats {uid} {folder} <&- >&- 2>&-"]
        self.proc = subprocess.Popen(
            ["unshare", "--pid", "--net", *(["--mount"] if prepare else []), "--fork", *command],
            stdin=null, stdout=null, stderr=null)
        wait_for("victim starts", lambda: children(self.proc.pid))
        self.root = children(self.proc.pid)[0]
        self.assert_runs()

    def beats(self):
        return struct.unpack_from(f"<{SLOTS}Q", self.map)

    def assert_runs(self):
        before = self.beats()
        wait_for("all tasks run", lambda: all(a > b for a, b in zip(self.beats(), before)))

    def assert_still(self):
        before = self.beats()
        time.sleep(QUIET)
        assert self.beats() == before, "a task runs"


def tree(root):
    """The pids below and with root."""
    found = [root]
    for pid in found:
        found += children(pid)
    return found


def victims_left():
    """Everybody in this pid namespace but us and what is dead already."""
    left = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    left.append(int(name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return left


def kill_all():
    for pid in victims_left():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_for("leftovers die", lambda: (reap(), not victims_left())[1])


class Notify:
    """The other end of a notify socket."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify.sock")
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.listener.settimeout(TIMEOUT)
        self.stages = []
        self.conn = None

    def fileno(self):
        return (self.conn or self.listener).fileno()

    def accept(self):
        self.conn = self.listener.accept()[0]
        self.conn.settimeout(TIMEOUT)

    def next(self):
        """The next (stage, root pid), or None when CRIU is gone."""
        if not self.conn:
            self.accept()
        try:
            packet = self.conn.recv(4096)
        except ConnectionResetError:
            packet = b""
        if not packet:
            return None
        magic, version, action, root, status = REQ.unpack(packet)
        assert (magic, version, status) == (MAGIC, 1, 0), packet
        name = action.rstrip(b"\0").decode()
        assert action == name.encode().ljust(32, b"\0"), action
        self.stages.append(name)
        return name, root

    def say(self, packet):
        try:
            self.conn.send(packet)
        except BrokenPipeError:
            pass  # the next receive tells that CRIU is gone

    def close(self):
        self.listener.close()
        if self.conn:
            self.conn.close()


class Criu(Notify):
    """One run of CRIU with a notify socket whose other end is in our hands."""

    def __init__(self, binary, folder, args, env=None, option=True):
        super().__init__(folder)
        self.folder = folder
        if option:
            args = [*args, "--notify-socket", self.path]
        null = subprocess.DEVNULL
        self.proc = subprocess.Popen([binary, *args], env={**os.environ, **(env or {})},
                                     stdin=null, stdout=null, stderr=null)

    def accept(self):
        """CRIU may end without a word: that must not take TIMEOUT."""
        ended = os.pidfd_open(self.proc.pid)
        try:
            ready = select.select([self.listener, ended], [], [], TIMEOUT)[0]
        finally:
            os.close(ended)
        if self.listener not in ready:
            raise AssertionError("CRIU does not connect")
        super().accept()

    def until(self, stage):
        """Agrees to everything up to stage, which is left open."""
        while got := self.next():
            if got[0] == stage:
                return got
            self.say(answer())
        raise AssertionError(f"no stage {stage} but {self.stages}")

    def wait(self):
        try:
            return self.proc.wait(TIMEOUT)
        finally:
            self.close()

    def finish(self):
        """Agrees to everything that is left; the exit status."""
        while self.next():
            self.say(answer())
        return self.wait()

    def hang_up(self):
        self.conn.close()
        return self.wait()

    def kill(self):
        self.proc.kill()
        return self.wait()

    def log(self):
        return log_of(self.folder)


def log_of(folder):
    try:
        with open(os.path.join(folder, "img", "criu.log"), errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""
