# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that run on the testbed's client host, check every answer and record the longest gap.

Each is a small program of its own (python3 clients.py NAME ARGS), because it must live in the client's network
namespace; it prints one JSON object when its standard input closes. What others than the counters do is in
traffic.py and sql.py."""

import json
import select
import socket
import subprocess
import sys
import time

import sql
import traffic


class Counter:
    """One TCP connection that asks Redis for INCR over and over: each answer is the previous plus one."""

    def __init__(self, address, key="counter", depth=1):
        self.socket = socket.create_connection((address, 6379), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = f"*2\r\n$4\r\nINCR\r\n${len(key)}\r\n{key}\r\n".encode()
        self.depth = depth
        self.buffer = b""
        self.last = None
        self.operations = self.wrong = 0
        self.gap = 0.0
        self.answered = time.monotonic()

    def round(self):
        """Send depth requests, take depth answers."""
        self.socket.sendall(self.request * self.depth)
        for _ in range(self.depth):
            value = self.answer()
            if self.last is not None and value != self.last + 1:
                self.wrong += 1
            self.last = value
            self.operations += 1
        now = time.monotonic()
        self.gap = max(self.gap, now - self.answered)
        self.answered = now

    def answer(self):
        """The next integer reply."""
        while b"\r\n" not in self.buffer:
            chunk = self.socket.recv(65536)
            if not chunk:
                raise ConnectionError("closed by the server")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        if line[:1] != b":":
            raise ValueError(f"not an integer: {line!r}")
        return int(line[1:])


def count(started, address, connections="1", depth="1"):
    """Counters on several connections until standard input closes."""
    counters = [Counter(address, f"counter{i}", int(depth)) for i in range(int(connections))]
    breaks, error = 0, None
    started()
    while not select.select([sys.stdin], [], [], 0)[0]:
        try:
            for counter in counters:
                counter.round()
        except (OSError, ValueError) as problem:
            breaks, error = 1, str(problem)
            break
    return {
        "operations": sum(c.operations for c in counters), "wrong": sum(c.wrong for c in counters),
        "breaks": breaks, "error": error, "gap_ms": max(c.gap for c in counters) * 1000,
        "last": [c.last for c in counters]}


class Client:
    """A client program running on a host of the testbed, driven by a test."""

    def __init__(self, pair, *arguments, host="client"):
        self.process = pair.bed.host(host).popen(
            ["/usr/bin/python3", __file__, *map(str, arguments)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        pair.clients.append(self)
        line = self.process.stdout.readline()
        if line.strip() != "started":
            raise AssertionError(f"client {arguments} did not start: {line!r}")

    def finish(self, timeout=90):
        """Stop it and return what it saw."""
        out, _ = self.process.communicate("", timeout=timeout)
        if not out:
            raise AssertionError(f"the client failed with exit code {self.process.returncode}, see its error above")
        return json.loads(out.splitlines()[-1])

    def kill(self):
        """End it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


PROGRAMS = {"count": count, "pump": traffic.pump, "idle": traffic.idle, "download": traffic.download,
            "keep-alive": traffic.keep_alive, "transfers": sql.transfers}


def main():
    """Entry point on the client host."""
    result = PROGRAMS[sys.argv[1]](lambda: print("started", flush=True), *sys.argv[2:])
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
