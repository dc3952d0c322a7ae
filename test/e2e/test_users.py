# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes of several users, as most database images have."""

import pytest

from pair import other, wait_for
from steps import check_moved, inside, shell

# Root stays and looks after a child of another user, which writes to its own file.
DROP = ("chmod 777 /tmp; setpriv --reuid=33 --regid=33 --clear-groups sh -c "
        "'while :; do id -u > /tmp/who; sleep 0.05; done' & wait")


def users(pair, host, name):
    """Effective users of all processes of the container."""
    lines = pair.bed.host(host).docker("top", name, "-e", "-o", "pid,uid").splitlines()[1:]
    return sorted(line.split()[1] for line in lines)


@pytest.mark.full
def test_user_of_the_image(pair):
    """USER in the image."""
    pair.bed.image("postgres")
    pair.run("a", "user", "postgres", "sleep", "1000", options=("--entrypoint", ""))
    check_same_users(pair, "user")


def test_user_option(pair):
    """--user with a number that no passwd knows, and a supplementary group."""
    shell(pair, "a", "user", "id; sleep 1000", options=("--user", "12345:54321", "--group-add", "77"))
    check_same_users(pair, "user")
    assert "12345" in users(pair, "b", "user")
    groups = inside(pair, "b", "user", "grep -E 'Groups|Uid|Gid' /proc/1/status").split()
    assert groups.count("12345") == 4 and groups.count("54321") >= 4 and "77" in groups


@pytest.mark.parametrize("image", ["redis"])
def test_root_drops_to_user(pair, image):
    """An entrypoint of root that starts a child of another user: both move, and the child can still write."""
    pair.bed.image(image)
    pair.run("a", "user", image, "sh", "-c", DROP)
    wait_for(lambda: set(users(pair, "a", "user")) == {"0", "33"}, "both users run")
    check_same_users(pair, "user")
    pair.bed.b.docker("exec", "user", "sh", "-c", "rm /tmp/who; until [ -s /tmp/who ]; do sleep 0.02; done")
    assert inside(pair, "b", "user", "cat /tmp/who; stat -c %u /tmp/who") == "33\n33"


def check_same_users(pair, name, source="a"):
    """Move it; the same users run there."""
    before = users(pair, source, name)
    pair.move(source, name)
    check_moved(pair, source, name)
    # sleep processes come and go: who runs matters
    assert set(users(pair, other(source), name)) == set(before)
