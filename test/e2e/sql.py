# SPDX-License-Identifier: GPL-2.0-or-later
"""A PostgreSQL client of just enough of the protocol, and the transactions that a test runs with it."""

import struct

from traffic import Gap, connect, told_to_stop

ACCOUNTS, EACH = 20, 1000


class Session:
    """One connection; the server trusts it."""

    def __init__(self, address, user="postgres"):
        self.socket = connect(address, 5432)
        self.reader = self.socket.makefile("rb")
        body = struct.pack("!i", 3 << 16) + f"user\0{user}\0database\0{user}\0\0".encode()
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self._until_ready()

    def _message(self):
        kind, length = struct.unpack("!ci", self.reader.read(5))
        return kind, self.reader.read(length - 4)

    def _until_ready(self):
        rows, error = [], None
        while True:
            kind, body = self._message()
            if kind == b"Z":
                break
            if kind == b"D":
                rows.append(_columns(body))
            if kind == b"E":
                error = body.replace(b"\0", b" ").decode(errors="replace")
        if error:
            raise ValueError(error)
        return rows

    def query(self, text):
        """Rows of the last statement, as lists of strings."""
        body = text.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        return self._until_ready()


def _columns(body):
    count, at, columns = struct.unpack_from("!h", body)[0], 2, []
    for _ in range(count):
        length = struct.unpack_from("!i", body, at)[0]
        at += 4
        columns.append(body[at:at + length].decode() if length >= 0 else None)
        at += max(length, 0)
    return columns


def transfers(started, address):
    """Money goes from account to account: the sum stays, and every committed transfer is in the log, once."""
    session = Session(address)
    session.query("CREATE TABLE account (id int PRIMARY KEY, money int); CREATE TABLE log (n int PRIMARY KEY)")
    session.query(f"INSERT INTO account SELECT g, {EACH} FROM generate_series(1, {ACCOUNTS}) g")
    gap, wrong, count = Gap(), 0, 0
    started()
    while not told_to_stop():
        give, take = count * 7 % ACCOUNTS + 1, (count * 11 + 3) % ACCOUNTS + 1
        session.query("BEGIN")
        session.query(f"UPDATE account SET money = money - 1 WHERE id = {give}")
        session.query(f"UPDATE account SET money = money + 1 WHERE id = {take}")
        session.query(f"INSERT INTO log VALUES ({count})")
        session.query("COMMIT")
        count += 1
        gap.progress()
        wrong += session.query("SELECT sum(money) FROM account") != [[str(ACCOUNTS * EACH)]]
    wrong += session.query("SELECT count(*), count(DISTINCT n) FROM log") != [[str(count), str(count)]]
    return {"wrong": wrong, "transactions": count, "gap_ms": gap.ms}
