# SPDX-License-Identifier: GPL-2.0-or-later
"""What clients do besides counting: large values both ways, silence, downloads, keep-alive requests."""

import hashlib
import queue
import select
import socket
import sys
import threading
import time

IDLE_TIMEOUT = 60


def connect(address, port):
    """A TCP connection whose reads do not wait for ever."""
    made = socket.create_connection((address, port), timeout=IDLE_TIMEOUT)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def told_to_stop(wait=0.0):
    """Whether the test closed our standard input."""
    return bool(select.select([sys.stdin], [], [], wait)[0])


def command(*words):
    """A request in Redis' protocol."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Gap:
    """The longest time without progress."""

    def __init__(self):
        self.longest = 0.0
        self.last = time.monotonic()

    def progress(self):
        """Something arrived."""
        now = time.monotonic()
        self.longest = max(self.longest, now - self.last)
        self.last = now

    @property
    def ms(self):
        """In milliseconds."""
        return self.longest * 1000


def pump(started, address, size=1 << 20, outstanding=8):
    """One Redis connection that sends and receives large values at the same time and checks each."""
    server = connect(address, 6379)
    reader = server.makefile("rb", buffering=1 << 20)
    expected = queue.Queue(int(outstanding))
    gap, wrong, values = Gap(), 0, 0
    base = bytes(hashlib.shake_256(b"pump").digest(int(size) + 4096))

    def send():
        number = 0
        while not told_to_stop():
            start = number * 37 % 4096
            value = base[start:start + int(size)]
            expected.put(value)
            server.sendall(command("SET", f"pump{number % 4}", value) + command("GET", f"pump{number % 4}"))
            number += 1
        expected.put(None)

    def answer():
        kind = reader.readline()
        if kind[:1] != b"$":
            return kind.strip()
        return reader.read(int(kind[1:]) + 2)[:-2]

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    started()
    while (value := expected.get()) is not None:
        wrong += answer() != b"+OK"
        wrong += answer() != value
        values += 1
        gap.progress()
    return {"wrong": wrong, "values": values, "gap_ms": gap.ms}


def idle(started, address):
    """A connection without a byte from before the move until its end."""
    server = connect(address, 6379)
    server.sendall(command("CLIENT", "SETNAME", "idler"))
    greeting = server.recv(100)
    started()
    told_to_stop(wait=None)
    server.sendall(command("CLIENT", "GETNAME"))
    return {"before": greeting.decode(), "after": server.recv(100).decode()}


def download(started, address, path, megabytes_per_second=10):
    """One HTTP response that is read slowly until standard input closes, then as fast as it comes."""
    server = connect(address, 80)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    server.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    reader = server.makefile("rb", buffering=1 << 16)
    status = reader.readline().decode().strip()
    while reader.readline() not in (b"\r\n", b""):
        pass
    started()
    digest, length, gap, throttled, before = hashlib.sha256(), 0, Gap(), True, None
    while chunk := reader.read(1 << 16):
        digest.update(chunk)
        length += len(chunk)
        gap.progress()
        if throttled and told_to_stop(wait=len(chunk) / float(megabytes_per_second) / 1e6):
            throttled, before = False, length
    return {"status": status, "sha256": digest.hexdigest(), "bytes": length, "bytes_before": before, "gap_ms": gap.ms}


class Page:
    """One HTTP connection that stays open as long as its server wants: nginx takes a thousand requests on each."""

    def __init__(self, address):
        self.address = address
        self._open()

    def _open(self):
        self.server = connect(self.address, 80)
        self.reader = self.server.makefile("rb")

    def get(self, path):
        """(status line, body)"""
        self.server.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        status, length, last = self.reader.readline(), 0, False
        while (line := self.reader.readline().lower()) not in (b"\r\n", b""):
            length = int(line.split(b":")[1]) if line.startswith(b"content-length:") else length
            last |= line == b"connection: close\r\n"
        body = self.reader.read(length)
        if last:
            self._open()
        return status, body


def keep_alive(started, address, connections=4, path="/"):
    """HTTP requests in turn on several connections that stay open."""
    pages = [Page(address) for _ in range(int(connections))]
    gap, wrong, requests, first = Gap(), 0, 0, None
    started()
    while not told_to_stop():
        for page in pages:
            status, body = page.get(path)
            first = first or body
            wrong += b" 200 " not in status or body != first
            requests += 1
            gap.progress()
    return {"wrong": wrong, "requests": requests, "gap_ms": gap.ms}
