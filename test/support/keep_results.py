# SPDX-License-Identifier: GPL-2.0-or-later
"""pytest plugin of test/all: one line of JSON as each test ends, so that an interrupted run can go on."""

import json
import os


def pytest_runtest_logreport(report):
    """A test has one line; an error of its fixtures, also afterwards, adds another that counts instead."""
    if report.when != "call" and report.passed:
        return
    line = {"test": report.nodeid, "outcome": report.outcome if report.when == "call" else "error",
            "seconds": round(report.duration, 1), "version": os.environ["DMIGRATE_RESULTS_VERSION"],
            "figures": dict(report.user_properties)}
    with open(os.environ["DMIGRATE_RESULTS"], "a", encoding="utf-8") as results:
        results.write(json.dumps(line) + "\n")
