# SPDX-License-Identifier: GPL-2.0-or-later
"""What a person does without Dmigrate: docker checkpoint, copy, docker start --checkpoint; with a stock CRIU.

Docker's own restore works up to 24 only, needs "experimental" in daemon.json, and keeps no connection unless CRIU is told to
in /etc/criu/runc.conf. All of that is set up here, on private copies of /etc and /usr/sbin that the hosts have."""

import shutil

CONFIGURATION = "tcp-established\n"


def prepare(host, criu):
    """Stock CRIU and its configuration on a host."""
    target = host.path("/usr/sbin/criu")
    shutil.copy2(criu, target)
    folder = host.path("/etc/criu")
    folder.mkdir(exist_ok=True)
    (folder / "runc.conf").write_text(CONFIGURATION, encoding="utf-8")


def move(source, destination, address, name, create):
    """Checkpoint, copy over the hosts' link, start. create: the arguments of docker create at the destination."""
    destination.docker("create", *create)
    source.docker("checkpoint", "create", name, "move")
    from_dir = _checkpoints(source, name)
    to_dir = _checkpoints(destination, name)
    source.run(["sh", "-c", f"tar -c -C {from_dir} move | ssh root@{address} tar -x -C {to_dir}"])
    destination.docker("start", "--checkpoint", "move", name)
    announce(destination, name, create[create.index("--ip") + 1])


def _checkpoints(host, name):
    folder = host.docker("inspect", "-f", "{{.ID}}", name)
    path = f"/var/lib/docker/containers/{folder}/checkpoints"
    host.run(["mkdir", "-p", path])
    return path


ANNOUNCE = """
import socket, struct, sys
address = socket.inet_aton(sys.argv[1])
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind(("eth0", 0))
mac = sock.getsockname()[4]
sock.send(b"\\xff" * 6 + mac + struct.pack("!HHHBBH", 0x806, 1, 0x800, 6, 4, 1) + mac + address + b"\\0" * 6 + address)
"""


def announce(host, name, address):
    """Tell the switch where the address is now, as a person would with arping: Docker 20.10 says nothing by itself."""
    pid = host.docker("inspect", "-f", "{{.State.Pid}}", name)
    host.run(["nsenter", "-t", pid, "-n", "/usr/bin/python3", "-c", ANNOUNCE, address])
