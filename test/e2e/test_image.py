# SPDX-License-Identifier: GPL-2.0-or-later
"""The image at the destination: reused, or only what is missing is sent."""

import pytest

from pair import wait_for
from steps import check_moved, inside, shell

SLEEP = ("sh", "-c", "exec sleep 10000")


def forget(pair, host, *images):
    """Remove images that an earlier test left there."""
    for image in images:
        pair.bed.host(host).run(["docker", "rmi", "-f", image], check=False)


def test_image_is_reused(pair):
    """Nothing is sent when the same layers are there."""
    shell(pair, "a", "same", SLEEP[2])
    report = pair.move("a", "same")
    assert report["image"]["reused"] is True and report["image"]["layers_sent"] == 0
    check_moved(pair, "a", "same")


def test_only_missing_layers(pair):
    """The destination has the common base: one layer is sent; then none on the way back. Docker's containerd store
    wants every layer in the archive, or it could never save the image again."""
    layers = 2 if "containerd" in pair.variant else 1
    for name in ("nginx", "python"):
        pair.bed.image(name)
    forget(pair, "b", "nginx")
    pair.run("a", "some", "nginx", *SLEEP)
    report = pair.move("a", "some")
    assert report["image"]["reused"] is False and report["image"]["layers_sent"] == layers
    check_moved(pair, "a", "some")
    assert pair.inspect("b", "some")["Config"]["Image"] == "nginx"
    assert "nginx" in pair.bed.b.docker("images", "nginx")
    inside(pair, "b", "some", "nginx -v")
    assert pair.move("b", "some")["image"]["layers_sent"] == 0


@pytest.mark.full
def test_whole_image(pair):
    """The destination has nothing of it."""
    pair.bed.image("busybox")
    forget(pair, "b", "busybox")
    pair.run("a", "whole", "busybox", *SLEEP)
    assert pair.move("a", "whole")["image"]["layers_sent"] == 1
    check_moved(pair, "a", "whole")


@pytest.mark.full
def test_image_without_a_tag(pair):
    """The container's image has lost its name at the source and is unknown at the destination."""
    shell(pair, "a", "base", "echo layer > /own; exec sleep 10000", address="10.88.0.52")
    wait_for(lambda: inside(pair, "a", "base", "cat /own || true") == "layer", "the file is there")
    pair.bed.a.docker("commit", "base", "e2e-own:1")
    pair.run("a", "untagged", "e2e-own:1", *SLEEP)
    pair.bed.a.docker("tag", "busybox", "e2e-own:1")  # takes the name away
    try:
        report = pair.move("a", "untagged")
        assert report["image"]["layers_sent"] == 1
        assert inside(pair, "b", "untagged", "cat /own") == "layer"
        check_moved(pair, "a", "untagged")
    finally:
        pair.bed.b.run(["docker", "rm", "-f", "untagged"], check=False)
        forget(pair, "b", "e2e-own:1")
        forget(pair, "a", "e2e-own:1")
