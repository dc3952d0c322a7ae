# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures: one pair of Docker hosts per variant, brought up once and used by all tests that want it."""

import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import engine  # noqa: E402
import pair as pairs  # noqa: E402
import steps  # noqa: E402
import traces  # noqa: E402

# made once: pytest keeps a session's fixture only for the very same object
VARIANTS = os.environ.get("DMIGRATE_VARIANTS", "20.10-v1,28-v2").split(",")
TEST_SECONDS = 300  # the longest, with 1 GB or an idle minute, takes half of it on a busy machine
ALLOWED_SKIPS = pairs.PROJECT / "test/allowed-skips"


def pytest_generate_tests(metafunc):
    """Every test that uses `pair` runs once per variant, grouped so that each pair comes up once."""
    if "pair" in metafunc.fixturenames:
        metafunc.parametrize("pair", VARIANTS, indirect=True, scope="session")


@pytest.fixture(scope="session")
def pair(request):
    """Two hosts with Dmigrate set up."""
    variant = request.param
    bed = pairs.testbed.Testbed.up(name=f"e2e-{os.getpid()}", **pairs.VARIANTS[variant])
    both = pairs.Pair(bed)
    both.variant = variant
    try:
        both.set_up()
        yield both
    finally:
        both.stop()
        bed.down()


@pytest.fixture(autouse=True)
def leaves_nothing(request):
    """No container outlives its test, and with it goes everything that it and Dmigrate made on either host."""
    if "pair" not in request.fixturenames:
        yield
        return
    both = request.getfixturevalue("pair")
    before = traces.take(both)
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    for client in both.clients:
        client.kill()
    both.clients.clear()
    for host in both.bed.docker_hosts:
        if getattr(request.node, "failed", False):
            print(f"--- dmigrated on {host.name}\n{both.log(host.name)}")
        _remove_docker_things(host, before[host.name])
    left = traces.wait_clean(both, before)
    assert not left, "left behind:\n" + "\n".join(left)


def _too_long(*_):
    raise AssertionError(f"the test did not end within {TEST_SECONDS} s")


def _remove_docker_things(host, before):
    names = engine.containers(host)
    if names:
        host.docker("rm", "-f", "-v", *names, check=False)
    for kind, now in (("volume", engine.volumes(host)), ("network", engine.networks(host))):
        own = {name for name in now - before[f"{kind}s"] if name.startswith("e2e-")}  # others must not be there
        if own:
            host.docker(kind, "rm", *own)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Let fixtures know whether the test failed; a skip that nobody allowed is a failure."""
    outcome = yield
    report = outcome.get_result()
    if call.when == "call":
        item.failed = report.failed
    if report.skipped and not hasattr(report, "wasxfail") and not _may_skip(item.nodeid):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and test/allowed-skips does not name it: {report.longrepr}"


def _may_skip(nodeid):
    lines = ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines()
    allowed = {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}
    return any(name in nodeid for name in allowed)


def pytest_terminal_summary(terminalreporter, config):
    """Figures of the moves that had a client."""
    figures = config.stash.get(steps.FIGURES, [])
    if figures:
        terminalreporter.section("downtimes")
        for line in figures:
            terminalreporter.write_line(line)
