#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Plays containerd-shim for the runtime's tests: a child subreaper that calls the runtime the way go-runc does.

Requests are JSON lines on stdin, what happens comes as JSON lines on stdout:
  {"call": NAME, "argv": [...], "stdio": "container"}   run the runtime; "container": 0-2 are the container's pipes
      -> {"called": NAME, "status": N, "output": TEXT}    after exit and end of file of its output, as go-runc waits
  {"end": true}                                            end at once
  any child that ends and was not called  -> {"exit": PID, "status": N}
  the container's pipes:                   -> {"output": TEXT} and {"eof": 1 or 2}
"""
import ctypes
import json
import os
import selectors
import signal
import sys

PR_SET_CHILD_SUBREAPER = 36


class Shim:
    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.calls = {}  # pid -> state of a call
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        rd, self.wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self.wake)
        signal.signal(signal.SIGCHLD, lambda *a: None)
        self.selector.register(rd, selectors.EVENT_READ, lambda: (os.read(rd, 512), self.reap()))
        self.selector.register(0, selectors.EVENT_READ, self.request)
        self.buffer = b""
        self.running = True

    @staticmethod
    def say(**event):
        print(json.dumps(event), flush=True)

    def request(self):
        data = os.read(0, 65536)
        if not data:
            self.running = False
        self.buffer += data
        while b"\n" in self.buffer:
            line, self.buffer = self.buffer.split(b"\n", 1)
            request = json.loads(line)
            if "call" in request:
                self.call(request)
            else:
                self.running = False

    def call(self, request):
        out_r, out_w = os.pipe2(os.O_CLOEXEC)
        if request.get("stdio") == "container":
            stdio = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), self.container_pipe(1), self.container_pipe(2)]
        else:
            stdio = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), out_w, out_w]
        pid = os.fork()
        if pid == 0:
            for number, fd in enumerate(stdio):
                os.dup2(fd, number)
            signal.set_wakeup_fd(-1)
            os.execv(request["argv"][0], request["argv"])
        for fd in set(stdio) | {out_w}:
            os.close(fd)
        state = {"name": request["call"], "status": None, "output": b"", "eof": False}
        self.calls[pid] = state
        self.selector.register(out_r, selectors.EVENT_READ, lambda: self.read_call(pid, state, out_r))

    def container_pipe(self, number):
        rd, wr = os.pipe2(os.O_CLOEXEC)
        self.selector.register(rd, selectors.EVENT_READ, lambda: self.read_container(number, rd))
        return wr

    def read_container(self, number, fd):
        data = os.read(fd, 65536)
        if data:
            self.say(output=data.decode(errors="replace"))
            return
        self.selector.unregister(fd)
        os.close(fd)
        self.say(eof=number)

    def read_call(self, pid, state, fd):
        data = os.read(fd, 65536)
        state["output"] += data
        if data:
            return
        self.selector.unregister(fd)
        os.close(fd)
        state["eof"] = True
        self.finish(pid, state)

    def finish(self, pid, state):
        if state["eof"] and state["status"] is not None:
            del self.calls[pid]
            self.say(called=state["name"], status=state["status"], output=state["output"].decode(errors="replace"))

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code
            if pid in self.calls:
                self.calls[pid]["status"] = code
                self.finish(pid, self.calls[pid])
            else:
                self.say(exit=pid, status=code)

    def run(self):
        while self.running:
            for key, _ in self.selector.select():
                key.data()


if __name__ == "__main__":
    Shim().run()
    sys.exit(0)
