# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures: one rig (two hosts, a Redis, a client) per variant; a failed test gives the next a new Redis."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from rig import Rig  # noqa: E402

DEFAULT_VARIANTS = "20.10-v1,28-v2"
# one list for all tests: pytest keeps a fixture only for the very same parameter object
VARIANTS = os.environ.get("DMIGRATE_VARIANTS", DEFAULT_VARIANTS).split(",")


def pytest_configure(config):
    """Markers."""
    config.addinivalue_line("markers", "full: only in the full matrix (make test-all)")


def pytest_generate_tests(metafunc):
    """Every test runs once per variant, grouped so that each rig comes up once."""
    if "rig" in metafunc.fixturenames:
        metafunc.parametrize("rigged", VARIANTS, indirect=True, scope="session")


@pytest.fixture(scope="session")
def rigged(request):
    """The rig of a variant."""
    rig = Rig(request.param, f"fault-{os.getpid()}")
    yield rig
    times = sorted(seconds for _, seconds in rig.measured)
    if times:
        print(f"\n{request.param}: served again after median {times[len(times) // 2] * 1000:.0f} ms, "
              f"most {times[-1] * 1000:.0f} ms ({len(times)} cases)")
        for case, seconds in rig.measured:
            print(f"  {seconds * 1000:7.0f} ms  {case}")
    rig.down()


@pytest.fixture
def rig(rigged, request):
    """The rig with Redis running and nothing left of the test before."""
    rigged.ensure()
    yield rigged
    if getattr(request.node, "failed", False):
        print(rigged.logs())
        rigged.reset()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Let fixtures know whether the test failed."""
    outcome = yield
    if call.when == "call":
        item.failed = outcome.get_result().failed
