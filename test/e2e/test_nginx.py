# SPDX-License-Identifier: GPL-2.0-or-later
"""A prefork nginx with live clients, and one that sends a large response while it moves."""

import hashlib

import pytest

from clients import Client
from pair import LAN_ADDRESS, wait_for
from steps import check_moved, record_gap

QUICK_MB, FULL_MB = 48, 1024
BLOCK = 1 << 20


def start_nginx(pair, options=()):
    """nginx with four workers of their own user."""
    pair.bed.image("nginx")
    pair.run("a", "web", "nginx", options=options)
    wait_for(lambda: pair.bed.client.run(["curl", "-sf", f"http://{LAN_ADDRESS}/"], check=False).returncode == 0,
             "nginx answers")


def large_file(path, megabytes):
    """Write a pseudo-random file; returns its checksum."""
    digest = hashlib.sha256()
    seed = hashlib.shake_256(b"dmigrate").digest(BLOCK)
    with open(path, "wb") as file:
        for number in range(megabytes):
            block = number.to_bytes(8, "little") + seed[8:]
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def test_keep_alive_clients(pair, request):
    """Requests on connections that stay open; then stopped gracefully: exit code 0."""
    start_nginx(pair)
    client = Client(pair, "keep-alive", LAN_ADDRESS)
    report = pair.move("a", "web")
    seen = client.finish()
    assert seen["wrong"] == 0 and seen["requests"] > 50
    record_gap(request, report, seen)
    check_moved(pair, "a", "web")
    top = pair.bed.b.docker("top", "web")
    assert top.count("nginx: worker process") == 4 and top.count("nginx: master process") == 1
    pair.bed.b.docker("stop", "web")
    assert pair.inspect("b", "web")["State"]["ExitCode"] == 0


@pytest.mark.parametrize("megabytes", [pytest.param(QUICK_MB, id="quick"),
                                       pytest.param(FULL_MB, id="1GB", marks=pytest.mark.full)])
def test_response_under_way(pair, request, megabytes):
    """A response that began at the source ends at the destination, with the right checksum."""
    folder = pair.www
    folder.mkdir(exist_ok=True)
    expected = large_file(folder / "large", megabytes)
    try:
        start_nginx(pair, options=("-v", f"{folder}:/srv/www/shared"))
        client = Client(pair, "download", LAN_ADDRESS, "/shared/large")
        report = pair.move("a", "web", "--bind", f"{folder}=share")
        seen = client.finish(timeout=240)
    finally:
        (folder / "large").unlink()
    assert seen["status"].endswith("200 OK") and seen["bytes"] == megabytes * BLOCK
    assert seen["bytes_before"] < seen["bytes"], "the response had ended before the move"
    assert seen["sha256"] == expected
    record_gap(request, report, seen)
    check_moved(pair, "a", "web")


@pytest.mark.full
def test_large_file_of_the_writable_layer(pair):
    """The file that is being sent moves along."""
    start_nginx(pair)
    inside = "head -c 20000000 /dev/urandom > /srv/www/own; sha256sum /srv/www/own"
    expected = pair.bed.a.docker("exec", "web", "sh", "-c", inside).split()[0]
    client = Client(pair, "download", LAN_ADDRESS, "/own", 3)
    pair.move("a", "web")
    seen = client.finish()
    assert seen["sha256"] == expected and seen["bytes_before"] < seen["bytes"]
    check_moved(pair, "a", "web")
