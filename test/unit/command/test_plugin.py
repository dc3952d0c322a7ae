# SPDX-License-Identifier: GPL-2.0-or-later
import json
import os
import pathlib
import subprocess

import pytest

PLUGIN = pathlib.Path(os.environ["DMIGRATE"]).with_name("docker-dmigrate")


@pytest.fixture
def plugin(tmp_path):
    """Runs the plugin with a dmigrate that shows what it was given."""
    shown = tmp_path / "dmigrate"
    shown.write_text('#!/bin/sh\necho "$DOCKER_HOST" "$@"\n')
    shown.chmod(0o755)

    def run(*args, code=0):
        env = {**os.environ, "DMIGRATE_LIBEXEC": str(tmp_path), "DOCKER_HOST": "unix:///old"}
        done = subprocess.run([PLUGIN, *args], capture_output=True, text=True, env=env, check=False)
        assert done.returncode == code, done
        return done.stdout.strip() if code == 0 else done.stderr

    return run


def test_metadata(plugin):
    about = json.loads(plugin("docker-cli-plugin-metadata"))
    assert about["SchemaVersion"] == "0.1.0"
    assert {"Vendor", "Version", "ShortDescription"} < set(about)


def test_arguments_pass_through(plugin):
    assert plugin("dmigrate") == "unix:///old"
    assert plugin("dmigrate", "migrate", "-H", "x", "--json") == "unix:///old migrate -H x --json"


def test_docker_options_before_the_name(plugin):
    assert plugin("-H", "unix:///a", "dmigrate", "status") == "unix:///a status"
    assert plugin("--host=unix:///b", "-D", "--config", "/c", "-l", "debug", "dmigrate", "status") == "unix:///b status"
    assert "set DOCKER_HOST" in plugin("--context", "far", "dmigrate", code=2)
    assert "needs a value" in plugin("--host", code=2)
    assert "plugin of docker" in plugin(code=2)
