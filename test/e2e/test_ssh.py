# SPDX-License-Identifier: GPL-2.0-or-later
"""ssh://: dmigrated is started there with a key of its own; data goes directly, or through ssh where it must."""

import pytest

from clients import Client
from pair import BIN, LAN_ADDRESS
from steps import check_moved, check_stayed, refused, shell, start_redis

SLEEP = "exec sleep 10000"
TARGET = "ssh://root@10.77.0.2"
# Only ssh's port and answers reach host b.
FIREWALL = """
table inet e2e {
    chain input {
        type filter hook input priority 0
        iifname "mgmt" tcp dport != 22 tcp flags & (syn | ack) == syn %s
    }
}
"""


@pytest.fixture(name="remote")
def remote_program(monkeypatch):
    """dmigrated is not in PATH there: say where it is."""
    monkeypatch.setenv("DMIGRATE_REMOTE", str(BIN / "dmigrated"))


def firewall(pair, verdict):
    """Close host b but for ssh."""
    pair.bed.b.run(["nft", "-f", "-"], input=FIREWALL % verdict)


def open_firewall(pair):
    """Undo it."""
    pair.bed.b.run(["nft", "delete", "table", "inet", "e2e"])


@pytest.mark.usefixtures("remote")
def test_move_through_ssh(pair):
    """Nothing but ssh and Docker is needed there beforehand."""
    pair.stop_listening("b")
    try:
        start_redis(pair)
        client = Client(pair, "count", LAN_ADDRESS)
        report = pair.move("a", "redis", target=TARGET)
        seen = client.finish()
        assert report["result"] == "ok" and seen["breaks"] == 0 and seen["wrong"] == 0
        check_moved(pair, "a", "redis")
    finally:
        pair.listen("b")


@pytest.mark.usefixtures("remote")
@pytest.mark.parametrize("verdict", ["reject", pytest.param("drop", marks=pytest.mark.full)])
def test_tunnel_where_a_firewall_stands(pair, verdict):
    """No direct connection can be made: everything goes through ssh."""
    start_redis(pair)
    client = Client(pair, "count", LAN_ADDRESS)
    firewall(pair, verdict)
    try:
        report = pair.move("a", "redis", target=TARGET)
    finally:
        open_firewall(pair)
    seen = client.finish()
    assert report["result"] == "ok" and seen["breaks"] == 0 and seen["wrong"] == 0
    check_moved(pair, "a", "redis")


@pytest.mark.full
@pytest.mark.usefixtures("remote")
def test_data_port(pair):
    """--data-port chooses where dmigrated listens."""
    shell(pair, "a", "port", SLEEP)
    pair.move("a", "port", "--data-port", "7901-7905", target=TARGET)
    check_moved(pair, "a", "port")


def test_not_installed_there(pair, monkeypatch):
    """The program is not where it is looked for."""
    monkeypatch.setenv("DMIGRATE_REMOTE", "/nowhere/dmigrated")
    shell(pair, "a", "port", SLEEP)
    assert "dmigrated" in refused(pair, "a", "port", 4, target=TARGET)
    check_stayed(pair, "a", "port")


def test_host_that_ssh_cannot_reach(pair):
    """ssh's own failure is told as such."""
    shell(pair, "a", "port", SLEEP)
    assert "ssh" in refused(pair, "a", "port", 4, target="ssh://root@10.77.0.2:2222")
    check_stayed(pair, "a", "port")
