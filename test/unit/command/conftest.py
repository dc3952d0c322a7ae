# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the real dmigrate with a dmigrated and an ssh that only talk."""
import json
import os
import pathlib
import subprocess

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[3]
SUPPORT = PROJECT / "test/support"
os.environ.setdefault("DMIGRATE", str(PROJECT / "build/bin/dmigrate"))


class Stage:
    """A folder with the fakes and what they were asked."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "dmigrated").symlink_to(SUPPORT / "fake_dmigrated.py")
        self.env = {
            **os.environ,
            "DMIGRATE_LIBEXEC": str(self.bin),
            "DMIGRATE_SSH": str(SUPPORT / "fake_ssh.py"),
            "DMIGRATE_RUN_DIR": str(folder / "run"),
            "DMIGRATE_STATE_DIR": str(folder / "state"),
            "FAKE_DIR": str(folder),
            "FAKE_PATH": f"{self.bin}:{os.environ['PATH']}",
        }

    def play(self, **scenario):
        scenario.setdefault("bootstrap", '{"port": 7000, "version": "0"}')
        scenario.setdefault("report", {"result": "ok", "exit_code": 0})
        (self.folder / "scenario.json").write_text(json.dumps(scenario), encoding="utf-8")

    def run(self, *args, code=0, **more):
        done = subprocess.run([os.environ["DMIGRATE"], *args], env=self.env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=30, check=False, **more)
        assert done.returncode == code, done
        return done

    def start(self, *args, **more):
        return subprocess.Popen([os.environ["DMIGRATE"], *args], env=self.env, text=True, stdout=subprocess.PIPE, **more)

    def serve(self, migration):
        """A migration that is under way without us."""
        served = subprocess.Popen([self.bin / "dmigrated", "--serve", migration], env=self.env, text=True,
                                  stdout=subprocess.PIPE)
        assert served.stdout.readline() == "ready\n"
        return served

    def asked(self, kind):
        path = self.folder / "asked"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [value for name, value in map(json.loads, lines) if name == kind]


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def report(**more):
    """A report as a real migration has it."""
    return {
        "container": "c" * 64, "name": "web", "source": "a", "destination": "ssh://b", "result": "ok", "error": None,
        "exit_code": 0,
        "phases": [{"name": "connect", "side": "source", "start_ms": 0, "ms": 12},
                   {"name": "commit", "side": "source", "start_ms": 12, "ms": 3},
                   {"name": "commit", "side": "destination", "start_ms": 13, "ms": 1.5}],
        "steps": [], "clock_error_ms": 0.1, "downtime_ms": 84, "frozen_ms": 90, "total_ms": 3200,
        "memory": {"bytes": 300000000, "zero_bytes": 0, "wire_bytes": 120000000, "faults": None},
        "files": {"count": 3, "bytes": 2000, "wire_bytes": 1000}, "image": {"reused": True, "layers_sent": 0, "bytes": 0},
        "network": {"tcp_connections": 2}, "warnings": ["slow disk"], **more}


def failed(result, code, message, side="destination"):
    return report(result=result, exit_code=code, error={"side": side, "code": 5, "message": message})
