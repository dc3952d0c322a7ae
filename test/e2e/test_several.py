# SPDX-License-Identifier: GPL-2.0-or-later
"""Migrations at the same time do not disturb each other."""

import concurrent.futures

import pytest

from clients import Client
from pair import other
from steps import check_moved, start_redis

ADDRESSES = {"first": "10.88.0.50", "second": "10.88.0.51"}


@pytest.mark.parametrize("sources", [
    pytest.param(("a", "a"), id="same-direction", marks=pytest.mark.full),
    pytest.param(("a", "b"), id="opposite-directions")])
def test_two_at_once(pair, sources):
    """Two containers move at once; both their clients go on."""
    homes = dict(zip(ADDRESSES, sources))
    for name, host in homes.items():
        start_redis(pair, host, name, address=ADDRESSES[name])
    clients = [Client(pair, "count", address) for address in ADDRESSES.values()]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        moves = [pool.submit(pair.move, host, name) for name, host in homes.items()]
        assert [move.result()["result"] for move in moves] == ["ok", "ok"]
    for client in clients:
        seen = client.finish()
        assert seen["breaks"] == 0 and seen["wrong"] == 0 and seen["operations"] > 100
    for name, host in homes.items():
        check_moved(pair, host, name)
        assert pair.is_running(other(host), name)
