#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes and measures TCP traffic; run on the hosts by tests.

    traffic.py serve ADDRESS             prints "ready", takes one connection, counts its bytes
    traffic.py send ADDRESS MEBIBYTES    prints Mbit/s
    traffic.py connect ADDRESS PORT      prints the milliseconds a connection took
"""

import socket
import sys
import time

PORT = 5001
BLOCK = bytes(1 << 16)
TIMEOUT = 20


def serve(address):
    """Read one connection to its end, then confirm."""
    with socket.create_server((address, PORT)) as listener:
        print("ready", flush=True)
        with listener.accept()[0] as connection:
            while connection.recv(1 << 18):
                pass
            connection.sendall(b"x")


def send(address, mebibytes):
    """Rate from the first byte sent to the confirmation that the last one arrived."""
    with socket.create_connection((address, PORT), TIMEOUT) as connection:
        start = time.monotonic()
        blocks = int(mebibytes) * 16
        for _ in range(blocks):
            connection.sendall(BLOCK)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        print(blocks * len(BLOCK) * 8 / 1e6 / (time.monotonic() - start))


def connect(address, port):
    """Time of a TCP handshake."""
    # once before: resolving addresses makes the interpreter load modules
    socket.create_connection((address, int(port)), TIMEOUT).close()
    start = time.monotonic()
    socket.create_connection((address, int(port)), TIMEOUT).close()
    print((time.monotonic() - start) * 1000)


if __name__ == "__main__":
    {"serve": serve, "send": send, "connect": connect}[sys.argv[1]](*sys.argv[2:])
