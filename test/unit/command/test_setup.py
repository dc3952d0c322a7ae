# SPDX-License-Identifier: GPL-2.0-or-later
import json
import subprocess

import pytest
from conftest import SUPPORT


class Docker:
    """A fake dockerd and its configuration."""

    def __init__(self, stage):
        self.stage = stage
        self.file = stage.folder / "daemon.json"
        self.backup = stage.folder / "daemon.json.before-dmigrate"
        self.runtime = stage.bin / "dmigrate-runc"
        self.runtime.symlink_to("/bin/true")
        self.socket = stage.folder / "docker.sock"
        stage.env["DOCKER_HOST"] = f"unix://{self.socket}"
        self.process = None

    def start(self, *options, content=None):
        if content is not None:
            self.file.write_text(content)
        self.process = subprocess.Popen([SUPPORT / "fake_dockerd.py", "--socket", self.socket, "--config-file", self.file,
                                         *options], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def setup(self, *args, code=0):
        done = self.stage.run("setup", *args, code=code)
        return json.loads(done.stdout) if "--json" in args and code == 0 else done

    @property
    def runtimes(self):
        return json.loads(self.file.read_text()).get("runtimes")


@pytest.fixture
def docker(stage):
    it = Docker(stage)
    yield it
    if it.process:
        it.process.kill()
        it.process.wait()


def test_registers_and_keeps_the_rest(docker):
    docker.start(content='{"debug": true, "runtimes": {"crun": {"path": "/usr/bin/crun"}}}')
    done = docker.setup("--json")
    assert done == {"daemon_json": str(docker.file), "runtime_path": str(docker.runtime), "changed": True, "dry_run": False,
                    "docker_runs": True, "containers": []}
    assert docker.runtimes == {"crun": {"path": "/usr/bin/crun"}, "dmigrate": {"path": str(docker.runtime)}}
    assert json.loads(docker.file.read_text())["debug"] is True
    assert json.loads(docker.backup.read_text())["runtimes"] == {"crun": {"path": "/usr/bin/crun"}}
    again = docker.setup("--json")
    assert again["changed"] is False


def test_reloads_what_an_earlier_try_wrote(docker):
    docker.start(content="{}")
    docker.file.write_text(json.dumps({"runtimes": {"dmigrate": {"path": str(docker.runtime)}}}))
    assert docker.setup("--json")["changed"] is False
    info = docker.setup("--runtime-path", "/bin/true", "--json")
    assert info["runtime_path"] == "/bin/true"


def test_makes_the_file(docker):
    docker.start()
    docker.setup("--quiet")
    assert docker.runtimes == {"dmigrate": {"path": str(docker.runtime)}}
    assert not docker.backup.exists()
    docker.setup("--undo", "--quiet")
    assert docker.runtimes == {}


def test_docker_that_does_not_run(docker):
    done = docker.setup("--daemon-json", str(docker.file))
    assert "reads the file when it starts" in done.stdout
    assert docker.runtimes == {"dmigrate": {"path": str(docker.runtime)}}
    assert "Docker does not run" in docker.setup("--undo", "--daemon-json", str(docker.file), code=3).stderr


def test_undo_while_containers_have_the_runtime(docker):
    docker.start("--containers", '{"web": "dmigrate", "db": "runc", "old": "dmigrate"}')
    docker.setup("--quiet")
    done = docker.setup("--undo")
    assert docker.runtimes == {"dmigrate": {"path": "runc"}}
    assert "for: web\n" in done.stdout and " old\n" in done.stdout and "db" not in done.stdout
    assert docker.setup("--undo", "--json")["containers"] == ["web", "old"]


def test_undo_waits_for_migrations(docker):
    docker.start()
    docker.setup("--quiet")
    docker.stage.play(events=[{"wait": "cancel"}])
    served = docker.stage.serve("00000000000000bb")
    assert "migration 00000000000000bb is under way" in docker.setup("--undo", code=3).stderr
    served.kill()
    served.wait()


def test_dry_run(docker):
    docker.start(content="{}")
    done = docker.setup("--dry-run")
    assert f'"path": "{docker.runtime}"' in done.stdout
    assert docker.file.read_text() == "{}"


@pytest.mark.parametrize("content", ["{", '{"runtimes": 3}', '{"a": 1, "a": 2}', "[]"])
def test_refuses_a_broken_file(docker, content):
    docker.start(content="{}")
    docker.file.write_text(content)
    done = docker.setup(code=3)
    assert "nothing was changed" in done.stderr
    assert docker.file.read_text() == content
    assert not docker.backup.exists()


def test_refuses_flags_that_would_conflict(docker):
    docker.start("--add-runtime", "x=/x", content="{}")
    assert "would not start" in docker.setup(code=3).stderr
    assert docker.file.read_text() == "{}"


def test_puts_back_what_docker_does_not_take(docker):
    docker.start("--deaf", content='{"debug": false}')
    done = docker.setup(code=4)
    assert "is as before" in done.stderr
    assert docker.file.read_text() == '{"debug": false}'
    assert docker.process.poll() is None


def test_runtime_must_exist(docker):
    docker.start()
    assert "No such file" in docker.setup("--runtime-path", "/nonexistent", code=2).stderr
    assert "not an absolute path" in docker.setup("--runtime-path", "runc", code=2).stderr
