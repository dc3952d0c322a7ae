# SPDX-License-Identifier: GPL-2.0-or-later
import json
import os
import stat
import subprocess

import pytest
from conftest import failed, report

OLD, NEW = "00000000000000aa", "00000000000000bb"


def store(stage, migration, value):
    folder = stage.folder / "state" / migration
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps({"id": migration, **value}))
    return folder


@pytest.fixture
def running(stage):
    """One that has ended and one that waits in its stage phase."""
    os.utime(store(stage, OLD, failed("failed", 4, "broken")), (1, 1))
    stage.play(events=[{"phase": "stage", "container": "db", "side": "source", "peer": "10.0.0.2:7788", "elapsed_ms": 2000,
                        "bytes": {"total": 200, "done": 50}}, {"wait": "cancel"}], report=report())
    served = stage.serve(NEW)
    yield served
    served.kill()
    served.wait()


def test_status_of_all(stage, running):
    rows = [line.split() for line in stage.run("status").stdout.splitlines()]
    assert rows[0] == ["ID", "CONTAINER", "SIDE", "PEER", "STATE", "TIME"]
    assert [NEW, "-", "connect", "-"] in rows
    assert [OLD, "web", "-", "ssh://b", "failed", "3.2", "s"] in rows
    states = json.loads(stage.run("status", "--json").stdout)
    assert [state["id"] for state in states] == [NEW, OLD]
    assert "event" not in states[0]


def test_status_of_none(stage):
    done = stage.run("status")
    assert (done.stdout, done.stderr) == ("", "")
    assert json.loads(stage.run("status", "--json").stdout) == []


def test_status_of_one(stage, running):
    assert json.loads(stage.run("status", NEW, "--json").stdout)["phase"] == "connect"
    assert "web to ssh://b: failed" in stage.run("status", "00000000000000a").stdout
    assert "the beginning of several ids" in stage.run("status", "0000", code=2).stderr
    assert "no migration dead is known" in stage.run("status", "dead", code=2).stderr


def test_watch_follows_to_the_end(stage, running):
    watching = stage.start("status", NEW, "--watch", stderr=subprocess.PIPE)
    while {"op": "watch"} not in stage.asked("request"):
        pass
    stage.run("cancel", NEW)
    out, err = watching.communicate(timeout=20)
    assert watching.returncode == 0
    assert "web moved to ssh://b" in out
    assert err == "stage      1.2 s\n"


def test_cancel_and_resolve_pass_the_answer_on(stage, running):
    stage.play(report=report())
    stage.run("resolve", NEW, "--destination")
    stage.run("resolve", NEW, "--source", "--json")
    assert stage.asked("request")[-2:] == [{"op": "resolve", "run_at": "destination"}, {"op": "resolve", "run_at": "source"}]
    stage.run("resolve", NEW, code=2)
    stage.run("resolve", NEW, "--source", "--destination", code=2)
    assert "does not run on this host" in stage.run("cancel", OLD, code=4).stderr


def test_refusal_is_an_error(stage):
    stage.play(cancel="already committed", report=report())
    served = stage.serve(NEW)
    assert stage.run("cancel", NEW, code=4).stderr == "dmigrate: already committed\n"
    served.kill()
    served.wait()


def test_report(stage, running):
    assert json.loads(stage.run("report", "--json").stdout)["id"] == OLD
    done = stage.run("report", OLD)
    assert "web to ssh://b: failed" in done.stdout
    assert done.stderr == "dmigrate: destination: broken\n"
    assert "no report" in stage.run("report", NEW, code=4).stderr


def test_key_is_private_and_never_overwritten(stage):
    path = stage.folder / "key"
    stage.run("key", "new", str(path))
    before = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    done = stage.run("key", "new", str(path), code=2)
    assert done.stderr.count("\n") == 1
    assert path.read_text() == before
    stage.run("key", "new", str(stage.folder / "no" / "folder"), code=2)


def test_errors_as_json(stage):
    done = stage.run("status", "dead", "--json", code=2)
    value = json.loads(done.stdout)
    assert value["exit_code"] == 2
    assert value["error"]["side"] == "local"
    assert "dead" in value["error"]["message"]


def test_usage(stage):
    assert "Usage: dmigrate COMMAND" in stage.run("--help").stdout
    assert "Usage: dmigrate COMMAND" in stage.run(code=2).stderr
    assert "not a command" in stage.run("movee", code=2).stderr
    assert stage.run("help", "migrate").stdout == stage.run("migrate", "--help").stdout
    assert stage.run("--version").stdout == stage.run("version").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_root_is_asked_for(stage):
    if subprocess.run(["setpriv", "--reuid=65534", "true"], check=False).returncode:
        pytest.skip("only one user in this namespace")
    done = subprocess.run(["setpriv", "--reuid=65534", os.environ["DMIGRATE"], "status"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "dmigrate: status needs root (try sudo)\n")


def journal(stage, *records):
    """A migration whose dmigrated died."""
    folder = stage.folder / "state" / NEW
    folder.mkdir(parents=True)
    begin = {"rec": "begin", "side": "source", "container": "web", "peer": "ssh://b"}
    (folder / "journal").write_text("".join(json.dumps(record) + "\n" for record in [begin, *records]))


def test_doubt_with_nobody_left(stage):
    journal(stage, {"rec": "in-doubt"})
    stage.env["DOCKER_HOST"] = "unix:///nonexistent"
    done = stage.run("status")
    assert [NEW, "web", "source", "ssh://b", "unknown", "(commit)", "-"] in [line.split() for line in done.stdout.splitlines()]
    state = json.loads(stage.run("status", NEW, "--json").stdout)
    assert (state["state"], state["committed"]) == ("unknown", False)


def test_recovery_that_fails_is_no_obstacle(stage):
    journal(stage, {"rec": "undo", "what": "restart-policy", "container": "web", "policy": "always", "max": 0})
    stage.env["DOCKER_HOST"] = "unix:///nonexistent"
    done = stage.run("status")
    assert "warning: not everything could be recovered" in done.stderr
    assert "failed" in done.stdout
    assert "is it running?" in stage.run("recover", code=4).stderr
