# SPDX-License-Identifier: GPL-2.0-or-later
"""Between GO and RESUMED, and after: never two copies that run, never none for good."""

import json
import time

import pytest

import processes
from pair import other, wait_for

# the state "unknown" is told after the source has missed the heartbeat, or at once when the connection closed
UNKNOWN = 5
SERVE = 1.0
# one question to a host that does not answer ends after 3 s, the next begins half a second later
QUESTION = 4
# a killed destination is finished from its journal, by its supervisor or by the listener
SETTLE = 30


def status(rig, migration):
    """What `dmigrate status` says about a migration on the source."""
    result = rig.pair.dmigrate(rig.home, "status", migration, "--json", check=False)
    try:
        return json.loads(result.stdout)
    except ValueError:
        return {"state": None, "text": result.stdout + result.stderr}


def is_unknown(rig, migration):
    """Whether the source says that it does not know who runs."""
    said = status(rig, migration)
    return "unknown" in (said.get("state"), said.get("result"))


class Doubt:
    """A migration that was stopped at a fault point around GO, and the watcher of its copies."""

    def __init__(self, rig, fault):
        self.rig = rig
        self.before = {host.name: rig.inventory(host) for host in rig.bed.docker_hosts}
        self.side = fault.split(":")[0]
        self.command = rig.start(fault)
        self.migration = rig.reached(self.side, self.command)
        self.copies = processes.Copies(rig.pair, "redis-server")
        wait_for(lambda: self.copies.samples, "the watcher sees the copies")
        self.moment = time.monotonic()

    def hit(self, *victims):
        """Kill or cut now."""
        self.moment = self.rig.hit(victims[0])
        for each in victims[1:]:
            self.rig.hit(each)

    def ran(self, *allowed):
        """At most one copy has run since, and that one may."""
        ran = self.copies.ran(self.moment)
        assert len(ran) <= 1, f"two copies ran: {ran}"
        assert set(ran) <= set(allowed), f"the wrong copy ran: {ran}"

    def ends_at_source(self, code=4):
        """The source serves again and the destination has nothing."""
        rig = self.rig
        rig.client.first_after(self.moment)
        if code is not None:
            result, report, errors = rig.finish(self.command)
            assert result == code, (result, report, errors)
        self.ran(rig.home)
        rig.bed.heal("a")
        rig.bed.heal("b")
        rig.clean(rig.target, self.before[rig.target.name])
        rig.serves_at_home(self.before[rig.home])
        rig.move()

    def ends_at_destination(self, codes=(0,)):
        """The destination serves and the source's copy has ended, or is gone."""
        rig = self.rig
        rig.client.first_after(self.moment)
        if codes is not None:
            result, report, errors = rig.finish(self.command)
            assert result in codes, (result, report, errors)
        ended = rig.home
        self.ran(other(ended))
        rig.home = other(ended)
        wait_for(lambda: not rig.pair.is_running(ended, "redis"), "the source's copy ends", SETTLE)
        rig.moved()
        rig.bed.heal("a")
        rig.bed.heal("b")
        wait_for(lambda: not [each for each in rig.inventory(rig.bed.host(ended)) if each.startswith("process dmig")],
                 "dmigrated at the source ends", SETTLE)
        if rig.pair.exists(ended, "redis"):  # kept, as the report says
            rig.bed.host(ended).docker("rm", "-v", "redis")
        rig.move()


@pytest.mark.parametrize("where", ["source:before-go:hold",
                                   pytest.param("destination:before-decision:hold", marks=pytest.mark.full),
                                   pytest.param("destination:before-commit:hold", marks=pytest.mark.full)])
def test_link_cut_before_the_decision(rig, where):
    """GO is lost or not acted on: unknown while the link is cut, then the source runs."""
    doubt = Doubt(rig, where)
    doubt.hit("link")
    if doubt.side == "source":
        rig.release("source")
    wait_for(lambda: is_unknown(rig, doubt.migration), "the state is unknown", UNKNOWN)
    assert rig.client.silent_for(doubt.moment) > 0.5, "somebody serves while nobody knows"
    rig.bed.heal(rig.target.name)
    if doubt.side == "destination":
        # its worker asks its journal only now; the source may have been told "nothing ran" before
        rig.client.first_after(doubt.moment)
        rig.release("destination")
    doubt.ends_at_source()


@pytest.mark.parametrize("where", ["destination:after-decision:hold",
                                   pytest.param("destination:resumed:hold", marks=pytest.mark.full)])
def test_link_cut_after_the_decision(rig, where):
    """RESUMED is lost: the destination runs, and the source hears it when it asks."""
    doubt = Doubt(rig, where)
    doubt.hit("link")
    rig.release("destination")
    rig.client.first_after(doubt.moment)
    wait_for(lambda: is_unknown(rig, doubt.migration), "the state is unknown", UNKNOWN)
    rig.bed.heal(rig.target.name)
    doubt.ends_at_destination()


@pytest.mark.full
@pytest.mark.parametrize("where,side,end", [("source:before-go:hold", "source", "source"),
                                            ("destination:resumed:hold", "destination", "destination")])
def test_resolved_by_hand(rig, where, side, end):
    """A person decides while the link is cut."""
    doubt = Doubt(rig, where)
    doubt.hit("link")
    rig.release(doubt.side)
    wait_for(lambda: is_unknown(rig, doubt.migration), "the state is unknown", UNKNOWN)
    doubt_moment = time.monotonic()
    rig.pair.dmigrate(rig.home, "resolve", doubt.migration, f"--{side}")
    if end == "source":
        assert rig.client.first_after(doubt_moment) - doubt_moment < SERVE + QUESTION
        doubt.ends_at_source()
    else:
        doubt.ends_at_destination((0, 6))


DIES = [(point, victim) for point in ("before-decision", "after-decision", "resumed")
        for victim in ("destination-worker", "destination-both")]


@pytest.mark.parametrize("where,victim", [
    pytest.param(f"destination:{point}:hold", victim, id=f"{point}-{victim}",
                 marks=[] if (point, victim) == ("after-decision", "destination-both") else pytest.mark.full)
    for point, victim in DIES])
def test_destination_dies(rig, where, victim):
    """Its journal decides, whoever reads it then."""
    doubt = Doubt(rig, where)
    doubt.hit(victim)
    if "resumed" in where:
        doubt.ends_at_destination((0, 6))
    else:  # also after the decision: it is taken back as long as nothing was let go
        doubt.ends_at_source()


@pytest.mark.parametrize("where", [pytest.param("source:before-go:hold", marks=pytest.mark.full), "source:go-sent:hold"])
@pytest.mark.parametrize("victim", ["source-worker", pytest.param("source-supervisor", marks=pytest.mark.full)])
def test_source_dies(rig, where, victim):
    """Another worker, or the one that is left, asks the destination."""
    doubt = Doubt(rig, where)
    doubt.hit(victim)
    rig.release("source")
    if where == "source:go-sent:hold":
        doubt.ends_at_destination((0, 6, 7))
    elif victim == "source-supervisor":  # its worker goes on and sends GO
        doubt.ends_at_destination((0, 6, 7))
    else:
        doubt.ends_at_source()


@pytest.mark.parametrize("where", [pytest.param("source:before-go:hold", marks=pytest.mark.full), "source:go-sent:hold"])
def test_source_dies_for_good(rig, where):
    """Supervisor and worker dead, in doubt: frozen until a person decides with `dmigrate resolve`."""
    doubt = Doubt(rig, where)
    doubt.hit("source-command", "source-both") if where == "source:before-go:hold" else doubt.hit("source-both")
    doubt.command.communicate(timeout=90)
    recovered = rig.pair.dmigrate(rig.home, "recover", check=False)
    assert doubt.migration in recovered.stdout + recovered.stderr
    assert is_unknown(rig, doubt.migration)
    side = "source" if where == "source:before-go:hold" else "destination"
    rig.pair.dmigrate(rig.home, "resolve", doubt.migration, f"--{side}")
    if side == "source":
        doubt.ends_at_source(None)
    else:
        doubt.ends_at_destination(None)


@pytest.mark.parametrize("where", [pytest.param("source:heard-resumed:hold", marks=pytest.mark.full),
                                   "source:before-finish:hold",
                                   pytest.param("source:tasks-ended:hold", marks=pytest.mark.full)])
@pytest.mark.parametrize("victim", [pytest.param("source-worker", marks=pytest.mark.full), "source-both",
                                    pytest.param("source-supervisor", marks=pytest.mark.full)])
def test_source_dies_after_the_commit(rig, where, victim):
    """The destination runs; the source's copy ends or is reported."""
    doubt = Doubt(rig, where)
    doubt.hit(victim)
    rig.release("source")
    if victim == "source-both" and where == "source:heard-resumed:hold":  # nobody wrote "committed" yet
        doubt.command.communicate(timeout=90)
        rig.pair.dmigrate(rig.home, "resolve", doubt.migration, "--destination")
        doubt.ends_at_destination(None)
    else:
        doubt.ends_at_destination((0, 6))


@pytest.mark.parametrize("victim", ["destination-worker", pytest.param("destination-both", marks=pytest.mark.full),
                                    pytest.param("link", marks=pytest.mark.full)])
def test_destination_dies_before_finish(rig, victim):
    """Committed: it runs there, and the stopped container stays here as a copy of the files."""
    doubt = Doubt(rig, "destination:before-finish:hold")
    doubt.hit(victim)
    if victim == "link":
        rig.release("destination")
    doubt.ends_at_destination((0, 6))


