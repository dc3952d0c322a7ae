# SPDX-License-Identifier: GPL-2.0-or-later
"""A client that asks one Redis for INCR over and over, checks every answer and notes the longest wait.

python3 counter.py ADDRESS [--reconnect]: runs until its standard input closes, says "started" at the first answer, then a
line of operations so far every 200 ms, and at the end one JSON object. With --reconnect a broken connection is made again
until it works, as any real client does; the wait counts, and so does the break."""

import json
import select
import socket
import sys
import time

REQUEST = b"*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n"
REPORT_SECONDS = 0.2
# A connection that gets no answer for so long is given up, if it may be made again.
PATIENCE_SECONDS = 1.0


class Counter:
    """The connection and what was seen on it."""

    def __init__(self, address, reconnect):
        self.address, self.reconnect = address, reconnect
        self.operations = self.wrong = self.breaks = 0
        self.last, self.gap, self.error = None, 0.0, None
        self.answered = time.monotonic()
        self.connect()

    def connect(self):
        """A new connection."""
        limit = PATIENCE_SECONDS if self.reconnect else 120
        self.socket = socket.create_connection((self.address, 6379), timeout=limit)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")

    def ask(self):
        """One request and its answer."""
        self.socket.sendall(REQUEST)
        line = self.stream.readline()
        if not line.startswith(b":"):
            raise ConnectionError(f"not an answer: {line!r}")
        value = int(line[1:])
        # After a break the answer may have been lost, but not the increment.
        allowed = (None, value - 1, value - 2) if self.breaks else (None, value - 1)
        self.wrong += self.last not in allowed
        self.last = value
        self.operations += 1
        now = time.monotonic()
        self.gap = max(self.gap, now - self.answered)
        self.answered = now

    def step(self):
        """One operation, or one try to get back to where operations work. False: given up."""
        try:
            self.ask()
        except (OSError, ValueError) as problem:
            self.error = str(problem)
            self.breaks += 1
            if not self.reconnect:
                return False
            self.again()
        return True

    def again(self):
        """Connect until it works; each try is bounded by the connection's time limit."""
        self.socket.close()
        while not select.select([sys.stdin], [], [], 0.01)[0]:
            try:
                self.connect()
                return
            except OSError:
                continue

    def result(self):
        """What a caller wants to know."""
        return {"operations": self.operations, "wrong": self.wrong, "breaks": self.breaks,
                "error": self.error, "gap_ms": round(self.gap * 1000, 1)}


def main():
    """Entry point."""
    counter = Counter(sys.argv[1], "--reconnect" in sys.argv)
    counter.ask()
    counter.gap = 0.0
    print("started", flush=True)
    reported = time.monotonic()
    while not select.select([sys.stdin], [], [], 0)[0] and counter.step():
        if time.monotonic() - reported > REPORT_SECONDS:
            reported = time.monotonic()
            print(counter.operations, flush=True)
    print(json.dumps(counter.result()), flush=True)


if __name__ == "__main__":
    main()
