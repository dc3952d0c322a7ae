# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures: a dumped container (once), and targets to restore it in."""

import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import bed as beds  # noqa: E402


def why_not():
    """Reason to skip everything, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not (beds.CRIU_DIR / "criu").exists():
        return "needs our CRIU (DMIGRATE_TEST_CRIU)"
    return None


def pytest_collection_modifyitems(items):
    """Without its programs nothing here can run."""
    reason = why_not()
    for item in items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def dumped():
    """A counter, dumped: .images, .dumped_at."""
    folder = tempfile.mkdtemp(prefix="dmig-test-", dir="/run")
    source = beds.Source(folder)
    source.dumped_at = source.dump()
    yield source
    source.close()
    shutil.rmtree(folder)


@pytest.fixture
def make_bed():
    """Function that makes targets; all end with the test."""
    made = []

    def make(**options):
        folder = tempfile.mkdtemp(prefix="dmig-test-", dir="/run")
        made.append(beds.Bed(folder, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
        shutil.rmtree(each.folder)


@pytest.fixture
def bed(make_bed):
    """One target."""
    return make_bed()
