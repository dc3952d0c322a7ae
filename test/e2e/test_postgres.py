# SPDX-License-Identifier: GPL-2.0-or-later
"""A PostgreSQL of its own user with volumes moves in the middle of transactions."""

from clients import Client
from pair import LAN_ADDRESS, wait_for
from steps import check_moved, inside, record_gap

DATA = "/var/lib/postgresql/data"


def test_transactions_go_on(pair, request):
    """Named volume, anonymous volume, data in the writable layer; every committed transaction is there."""
    pair.bed.image("postgres")
    pair.run("a", "db", "postgres", options=("-v", f"e2e-data:{DATA}", "-v", "/extra", "--shm-size", "96m"))
    wait_for(lambda: pair.bed.a.run(["docker", "exec", "db", "psql", "-Atc", "select 1"], check=False).returncode == 0,
             "postgres answers", 60)
    pair.bed.a.docker("exec", "-u", "0", "db", "sh", "-c", "echo anonymous > /extra/file; echo layer > /srv/file;"
                      "chown postgres /srv/file; ln -s /nowhere /srv/link; rm /etc/issue")
    client = Client(pair, "transfers", LAN_ADDRESS)
    report = pair.move("a", "db")
    seen = client.finish()
    assert seen["wrong"] == 0 and seen["transactions"] > 10
    record_gap(request, report, seen)
    check_moved(pair, "a", "db")
    assert inside(pair, "b", "db", "cat /extra/file /srv/file; stat -c %U /srv/file; readlink /srv/link; whoami;"
                  "test -e /etc/issue || echo gone").split() == [
                      "anonymous", "layer", "postgres", "/nowhere", "postgres", "gone"]
    check_restart(pair, seen["transactions"])


def check_restart(pair, transactions):
    """The files are complete: a stopped and started server has every transaction; it ends with exit code 0."""
    pair.bed.b.docker("stop", "-t", "30", "db")
    assert pair.inspect("b", "db")["State"]["ExitCode"] == 0
    pair.bed.b.docker("start", "db")
    query = ["docker", "exec", "db", "psql", "-Atc", "select count(*) from log"]
    wait_for(lambda: pair.bed.b.run(query, check=False).returncode == 0, "postgres answers again", 60)
    assert pair.bed.b.output(query) == str(transactions)
    mounts = {mount["Destination"]: mount for mount in pair.inspect("b", "db")["Mounts"]}
    assert mounts[DATA]["Name"] == "e2e-data" and mounts["/extra"]["Type"] == "volume"
