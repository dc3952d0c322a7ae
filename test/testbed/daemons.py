# SPDX-License-Identifier: GPL-2.0-or-later
"""containerd and dockerd of a host: started, and waited for by their own readiness message."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import time

from . import paths

# a loaded machine with two hosts starting at once
READY_TIMEOUT = 90.0
CONTAINERD_CONFIG = """\
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
"""
DAEMONS = {
    "containerd": ["containerd"],
    "dockerd": ["dockerd", "--containerd=/run/containerd/containerd.sock"],
}


def docker_files(config, experimental):
    """{path: (mode, text)} of what containerd and dockerd read at their start."""
    if experimental:
        config = {**config, "experimental": True}
    return {"/etc/docker/daemon.json": (0o644, json.dumps(config, indent=2) + "\n"),
            "/etc/containerd/config.toml": (0o644, CONTAINERD_CONFIG)}


def start_docker(host):
    """Start containerd and dockerd, each ready before the next begins."""
    for name, argv in DAEMONS.items():
        host.facts.setdefault("daemons", {})[name] = start(host, name, argv)


def restart_dockerd(host):
    """Stop dockerd as its service would, and start it again."""
    stopping = os.pidfd_open(host.facts["daemons"]["dockerd"])
    signal.pidfd_send_signal(stopping, signal.SIGTERM)
    ended = select.select([stopping], [], [], READY_TIMEOUT)[0]
    os.close(stopping)
    if not ended:
        raise paths.TestbedError(f"dockerd of host {host.name} does not stop")
    host.facts["daemons"]["dockerd"] = start(host, "dockerd", DAEMONS["dockerd"])


def start(host, name, argv):
    """Start a daemon of the host and return its pid when it says that it is ready."""
    log = host.state / f"{name}.log"
    with _notify_socket(host.state / f"{name}.notify") as notify:
        with open(log, "ab") as output:
            subprocess.run(host.command(argv, daemon=True), check=True,
                           env=host.environment({"NOTIFY_SOCKET": notify.getsockname()}),
                           stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        return _wait_ready(notify, f"{name} of host {host.name}", log)


@contextlib.contextmanager
def _notify_socket(path):
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        notify.bind(str(path))
        try:
            yield notify
        finally:
            path.unlink()


def _receive(notify):
    """(text, pid of the sender as this pid namespace numbers it)"""
    size = struct.calcsize("3i")
    text, controls, _, _ = notify.recvmsg(4096, socket.CMSG_SPACE(size))
    pid, _, _ = struct.unpack("3i", controls[0][2][:size])
    return text.decode(), pid


def _wait_ready(notify, what, log):
    _, pid = _receive(notify)  # "STARTED=1", sent by enter just before it became the daemon
    process = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(notify, select.POLLIN)
        poll.register(process, select.POLLIN)
        deadline = time.monotonic() + READY_TIMEOUT
        while (left := deadline - time.monotonic()) > 0:
            events = dict(poll.poll(left * 1000))
            if notify.fileno() in events and "READY=1" in _receive(notify)[0].split("\n"):
                return pid
            if process in events:
                raise paths.TestbedError(f"{what} ended:\n{tail(log)}")
        raise paths.TestbedError(f"{what} was not ready in {READY_TIMEOUT:.0f} s:\n{tail(log)}")
    finally:
        os.close(process)


def tail(log, lines=15):
    """The last lines of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
