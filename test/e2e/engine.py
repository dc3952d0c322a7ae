# SPDX-License-Identifier: GPL-2.0-or-later
"""Questions to a host's Docker without starting its command: dozens of them surround every test."""

import http.client
import json
import socket


class _Connection(http.client.HTTPConnection):
    """HTTP over the host's socket."""

    def __init__(self, path):
        super().__init__("docker", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def ask(host, path):
    """What the Engine API of a host answers; None for what it does not know."""
    connection = _Connection(host.path("/run/docker.sock"))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise AssertionError(f"{host.name}: GET {path}: {answer.status} {body.decode(errors='replace')}")
    return json.loads(body)


def containers(host):
    """Ids of all containers."""
    return {each["Id"] for each in ask(host, "/containers/json?all=1")}


def volumes(host):
    """Names of all volumes."""
    return {each["Name"] for each in ask(host, "/volumes")["Volumes"] or ()}


def networks(host):
    """Names of all networks."""
    return {each["Name"] for each in ask(host, "/networks")}


def inspect(host, name):
    """A container as docker inspect shows it, or None."""
    return ask(host, f"/containers/{name}/json")
