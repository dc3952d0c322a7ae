# SPDX-License-Identifier: GPL-2.0-or-later
"""A database with a named and an anonymous volume moves, and comes back to where its old volume still is."""

import pytest

from pair import MoveFailed, other, wait_for

NAMED = "e2e-extra"


def sql(pair, host, text):
    """The answer of the database in the container."""
    return pair.bed.host(host).docker("exec", "pg", "psql", "-XAtq", "-c", text).strip()


def volumes(pair, host):
    """Names of the volumes there."""
    return pair.bed.host(host).docker("volume", "ls", "-q").split()


def start_postgres(pair, host):
    """A running database with one row."""
    pair.bed.image("postgres")
    for name in "ab":
        pair.bed.host(name).run(["docker", "volume", "rm", "-f", NAMED], check=False)
    pair.run(host, "pg", "postgres", options=("-v", f"{NAMED}:/extra"))
    wait_for(lambda: pair.bed.host(host).run(
        ["docker", "exec", "pg", "psql", "-c", "select 1"], check=False).returncode == 0, "postgres answers")
    sql(pair, host, "create table t (place text)")


def note(pair, host, text):
    """Write something in all three places."""
    sql(pair, host, f"insert into t values ('{text}')")
    pair.bed.host(host).docker("exec", "-u", "root", "pg", "sh", "-c",
                               f"echo {text} >> /extra/notes; echo {text} >> /var/tmp/notes")


def noted(pair, host):
    """What is written there, the same in all three places."""
    rows = sql(pair, host, "select place from t").split()
    for path in ("/extra/notes", "/var/tmp/notes"):
        assert pair.bed.host(host).docker("exec", "pg", "cat", path).split() == rows
    return rows


def test_there_and_back(pair):
    """Contents are complete each time; the source keeps the named volume only, and takes it again."""
    start_postgres(pair, "a")
    expected = []
    for source in ("a", "b", "a"):
        note(pair, source, f"on-{source}-{len(expected)}")
        expected = noted(pair, source)
        pair.move(source, "pg")
        assert noted(pair, other(source)) == expected
        assert volumes(pair, source) == [NAMED]
    assert len(expected) == 3


def test_foreign_data_is_not_replaced(pair):
    """A volume of that name that no move left is somebody else's."""
    start_postgres(pair, "a")
    pair.bed.host("b").docker("run", "--rm", "-v", f"{NAMED}:/v", "--user", "root", "--entrypoint", "sh",
                              "postgres", "-c", "echo precious > /v/file")
    with pytest.raises(MoveFailed) as failure:
        pair.move("a", "pg")
    assert failure.value.code == 3
    assert pair.is_running("a", "pg")
    assert pair.bed.host("b").docker("run", "--rm", "-v", f"{NAMED}:/v", "--entrypoint", "cat",
                                     "postgres", "/v/file").strip() == "precious"
