# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures: one pair of Docker hosts per variant, brought up once and used by all tests that want it."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import pair as pairs  # noqa: E402

DEFAULT_VARIANTS = "20.10-v1,28-v2"


def pytest_generate_tests(metafunc):
    """Every test that uses `pair` runs once per variant, grouped so that each pair comes up once."""
    if "pair" in metafunc.fixturenames:
        chosen = os.environ.get("DMIGRATE_VARIANTS", DEFAULT_VARIANTS).split(",")
        metafunc.parametrize("pair", chosen, indirect=True, scope="session")


@pytest.fixture(scope="session")
def pair(request):
    """Two hosts with Dmigrate set up."""
    variant = request.param
    bed = pairs.testbed.Testbed.up(name=f"e2e-{os.getpid()}", **pairs.VARIANTS[variant])
    both = pairs.Pair(bed)
    try:
        both.set_up()
        yield both
    finally:
        both.stop()
        bed.down()


@pytest.fixture(autouse=True)
def clean_containers(request):
    """No container outlives its test; a failed test shows both hosts' logs."""
    yield
    if "pair" not in request.fixturenames:
        return
    both = request.getfixturevalue("pair")
    failed = getattr(request.node, "failed", False)
    for host in both.bed.docker_hosts:
        if failed:
            print(f"--- dmigrated on {host.name}\n{both.log(host.name)}")
        names = host.docker("ps", "-aq").split()
        if names:
            host.docker("rm", "-f", "-v", *names)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Let fixtures know whether the test failed."""
    outcome = yield
    if call.when == "call":
        item.failed = outcome.get_result().failed
