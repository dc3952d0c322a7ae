# SPDX-License-Identifier: GPL-2.0-or-later
"""What cannot work is refused with a message that says why, and nothing has changed."""

import subprocess

import pytest

from pair import BIN
from steps import check_stayed, refused, shell

SLEEP = "exec sleep 10000"


@pytest.fixture(name="here")
def container(pair):
    """A container at a that could move."""
    shell(pair, "a", "here", SLEEP)
    yield "here"
    assert pair.is_running("a", "here")
    assert pair.remains("a") == "" and pair.remains("b") == ""


def test_no_such_container(pair):
    """A name that Docker does not know."""
    assert "absent" in refused(pair, "a", "absent", 2)


@pytest.mark.full
def test_stopped_container(pair):
    """Nothing runs that could move."""
    shell(pair, "a", "ended", "exit 0")
    pair.bed.a.docker("wait", "ended")
    assert "does not run" in refused(pair, "a", "ended", 3)


def test_nobody_listens(pair, here):
    """No dmigrated at the address."""
    assert "7799" in refused(pair, "a", here, 4, target="tls://10.77.0.2:7799")


@pytest.mark.full
def test_bad_address(pair, here):
    """Not an address at all."""
    assert refused(pair, "a", here, 2, target="http://10.77.0.2")


@pytest.mark.full
def test_unknown_option(pair, here):
    """A word that an option does not have."""
    assert "--exec" in refused(pair, "a", here, 2, "--exec", "perhaps")


def test_wrong_key(pair, here):
    """The other side has another key: neither learns more than that."""
    wrong = pair.bed.shared / "wrong.key"
    subprocess.run([BIN / "dmigrate", "key", "new", wrong], check=True, capture_output=True)
    try:
        assert "key" in refused(pair, "a", here, 4, "--key", wrong)
    finally:
        wrong.unlink()


@pytest.mark.full
def test_key_that_others_can_read(pair, here):
    """0600 is enforced."""
    open_key = pair.bed.shared / "open.key"
    open_key.write_text(pair.key.read_text(encoding="utf-8"), encoding="utf-8")
    open_key.chmod(0o644)
    try:
        assert "open.key" in refused(pair, "a", here, 2, "--key", open_key)
    finally:
        open_key.unlink()


def test_name_taken(pair, here):
    """Another container has the name there."""
    shell(pair, "b", "taken", SLEEP, address="10.88.0.52")
    assert "taken" in refused(pair, "a", here, 3, "--name", "taken")
    assert pair.is_running("b", "taken")


@pytest.mark.full
def test_address_taken(pair):
    """Another container has the address there."""
    shell(pair, "b", "there", SLEEP, address="10.88.0.53")
    pair.bed.b.docker("rm", "-f", "there")
    shell(pair, "a", "mine", SLEEP, address="10.88.0.53")
    pair.bed.b.docker("run", "-d", "--name", "other", "--network", "lan", "--ip", "10.88.0.53", "busybox", "sleep",
                      "1000")
    assert "10.88.0.53" in refused(pair, "a", "mine", 3)
    check_stayed(pair, "a", "mine")


def test_runtime_not_registered(pair, here):
    """dmigrate setup was not run there."""
    pair.dmigrate("b", "setup", "--undo", "--quiet")
    try:
        assert "setup" in refused(pair, "a", here, 3)
        check_stayed(pair, "a", here)
    finally:
        pair.dmigrate("b", "setup", "--quiet")


@pytest.mark.full
def test_bind_mount(pair):
    """A bind mount nobody said anything about."""
    folder = pair.bed.shared / "bound"
    folder.mkdir(exist_ok=True)
    shell(pair, "a", "bound", SLEEP, options=("-v", f"{folder}:/bound"))
    assert str(folder) in refused(pair, "a", "bound", 3)
    check_stayed(pair, "a", "bound")
