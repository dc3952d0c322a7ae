# SPDX-License-Identifier: GPL-2.0-or-later
"""Peers that have the key and break the protocol (test/support/evil_peer.c): refused, and nothing is left of them."""

import subprocess
import time

import pytest

from pair import ADDRESS, BUILD
from test_before_commit import SERVE, check_undone

EVIL = BUILD / "test/support/evil-peer"
PORT = 7999
RESULT = '11={"blockers":[],"warnings":[],"docker":"0","image":{"present":true,"have":1,"count":1}}'

SOURCES = {
    "go-first": ["19", "wait"],
    "finish-first": ["21", "wait"],
    "state-end-first": ["17", "wait"],
    "answer-of-a-destination": ["18", "wait"],
    "query-out-of-turn": ["23", "wait"],
    "unknown-message": ["999", "wait"],
    "no-json": ["10=nonsense", "wait"],
    "empty-check": ["10={}", "wait"],
    "spec-is-a-number": ['10={"spec":7,"options":{"tcp":"established","source":"remove"}}', "wait"],
    "flood": ["12*10000", "wait"],
    "bad-ping": ["2=x", "wait"],
    "bad-abort": ["4=x", "wait"],
    "leaves": [],
}
DESTINATIONS = {
    "result-is-no-json": ["@10", "11=nonsense", "wait"],
    "result-is-empty": ["@10", "11={}", "wait"],
    "blockers-are-a-number": ["@10", '11={"blockers":7,"warnings":"x","image":[]}', "wait"],
    "ready-first": ["@10", "18", "wait"],
    "resumed-first": ["20", "wait"],
    "asks-like-a-source": ["@10", "10={}", "wait"],
    "flood": ["12*10000", "wait"],
    "leaves-after-check": ["@10"],
    "takes-no-data": ["@10", RESULT, "wait"],
    "lies-from-end-to-end": ["@10", RESULT, "13", "15", "18", "20", "22={}", "wait"],
}
QUICK = {"go-first", "lies-from-end-to-end"}


def chosen(table):
    """The table as pytest parameters."""
    return [pytest.param(words, id=name, marks=[] if name in QUICK else pytest.mark.full)
            for name, words in table.items()]


@pytest.mark.parametrize("words", chosen(SOURCES))
def test_evil_source(rig, words):
    """The destination refuses, keeps nothing, and serves the next."""
    before = rig.inventory(rig.target)
    result = rig.source.run([EVIL, "source", f"{ADDRESS[rig.target.name]}:7788", rig.pair.key, *words], check=False)
    assert result.returncode == 0 or not words, result.stdout
    rig.clean(rig.target, before)
    rig.move()


@pytest.mark.parametrize("words", chosen(DESTINATIONS))
def test_evil_destination(rig, words):
    """The source says what is wrong and serves on."""
    before = {host.name: rig.inventory(host) for host in rig.bed.docker_hosts}
    evil = rig.target.popen([EVIL, "destination", PORT, rig.pair.key, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert evil.stdout.readline() == "listening\n"
        moment = time.monotonic()
        command = rig.source.popen(rig.pair.command(rig.home, "redis", target=f"tls://{ADDRESS[rig.target.name]}:{PORT}"),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        code, report, errors = rig.finish(command)
        assert code in (3, 4) and report["error"]["message"], (code, report, errors)
        print(report["error"]["message"])
        check_undone(rig, before, moment, SERVE, "an evil destination")
    finally:
        evil.kill()
        evil.wait()
    rig.move()
