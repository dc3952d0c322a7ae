# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis client on the testbed's client host that says when it was answered, and the test's end of it."""

import pathlib
import select
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

from clients import Counter  # noqa: E402

# seconds between two questions: often enough to see gaps of some ms, seldom enough to leave the CPU to the migration
PACE = 0.002
# a line at least this often
TELL = 0.02


def ask(address):
    """INCR on one connection until standard input closes; prints "TIME OPERATIONS WRONG GAP" now and then."""
    counter = Counter(address, "fault")
    told = 0.0
    while not select.select([sys.stdin], [], [], PACE)[0]:
        asked = time.monotonic()
        counter.round()
        now = counter.answered
        if now - told > TELL:
            print(now, counter.operations, counter.wrong, now - asked, flush=True)
            told = now


class Client:
    """The program above on the client host, and what it has said."""

    def __init__(self, pair, address):
        self.process = pair.bed.client.popen(["/usr/bin/python3", __file__, address], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.changed = threading.Condition()
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.first_after(time.monotonic())

    def _read(self):
        for line in self.process.stdout:
            now, operations, wrong, gap = line.split()
            with self.changed:
                self.lines.append((float(now), int(operations), int(wrong), float(gap)))
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)
            self.changed.notify_all()

    def first_after(self, moment, seconds=60):
        """When the first answer after that moment came."""
        with self.changed:
            self.changed.wait_for(lambda: self.lines and (self.lines[-1] is None or self.lines[-1][0] > moment), seconds)
            self.check()
            later = [line for line in self.lines if line[0] > moment]
        if not later:
            raise AssertionError(f"no answer within {seconds} s")
        return later[0][0]

    def check(self):
        """The connection stands and no answer was wrong."""
        if None in self.lines:
            raise AssertionError(f"the client's connection broke: {self.process.stderr.read()[-400:]}")
        if self.lines and self.lines[-1][2]:
            raise AssertionError(f"{self.lines[-1][2]} wrong answers")

    def silent_for(self, moment):
        """Seconds without an answer until now, counted from that moment."""
        with self.changed:
            last = self.lines[-1][0] if self.lines and self.lines[-1] else 0
        return time.monotonic() - max(last, moment)

    def stop(self):
        """End it."""
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    ask(sys.argv[1])
