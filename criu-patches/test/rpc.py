# SPDX-License-Identifier: GPL-2.0-or-later
"""The little of CRIU's RPC (images/rpc.proto) that a container runtime uses."""
import os
import socket
import subprocess

DUMP, RESTORE, NOTIFY = 1, 2, 6


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def parse(data):
    """{field: value} of one message; only varints and length-delimited fields occur."""
    fields, at = {}, 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = take()
        value = take()
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        fields[key >> 3] = value
    return fields


class Swrk:
    """`criu swrk`, as runc starts it; notifications are acknowledged in between."""

    def __init__(self, binary, kind, image_dir, env, pid=None):
        self.images = os.open(image_dir, os.O_RDONLY | os.O_DIRECTORY)
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.notified = []
        self.success = None
        self.proc = subprocess.Popen([binary, "swrk", str(theirs.fileno())], env={**os.environ, **env},
                                     pass_fds=(theirs.fileno(), self.images), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        theirs.close()
        opts = number(1, self.images) + number(9, 4) + text(10, "criu.log") + number(12, 1)
        opts += number(34, 0) + number(64, 3)  # manage_cgroups ignore, network_lock skip
        if pid:
            opts += number(2, pid)
        if kind == RESTORE:
            opts += number(26, 1)  # rst_sibling
        self.sock.send(number(1, kind) + text(2, opts))

    def pump(self):
        """Handles one message; False at the end."""
        message = self.sock.recv(65536)
        if not message:
            return False
        fields = parse(message)
        if fields[1] == NOTIFY:
            self.notified.append(parse(fields[5])[1].decode())
            self.sock.send(number(1, NOTIFY) + number(3, 1))
            return True
        self.success = bool(fields[2])
        return False

    def close(self):
        self.sock.close()
        os.close(self.images)
        return self.proc.wait(20)
