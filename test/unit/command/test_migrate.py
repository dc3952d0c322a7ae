# SPDX-License-Identifier: GPL-2.0-or-later
import json
import os
import pty
import signal
import time

import pytest
from conftest import failed, report

STATUS = {"phase": "check", "committed": False, "elapsed_ms": 5, "bytes": {"total": 0, "done": 0, "rate": 0}}
DRAIN = {"phase": "drain", "committed": True, "elapsed_ms": 100, "eta_ms": 1500,
         "bytes": {"total": 300000000, "done": 135000000, "rate": 112000000}}


def test_options_reach_dmigrated(stage):
    stage.play(report=report())
    stage.run("migrate", "web", "ssh://root@b:2222", "--name", "web2", "--source", "keep", "--tcp=close", "--volumes", "none",
              "--bind", "/a=b=share", "--bind", "/c=copy", "--exec", "drop", "--timeout", "1h", "--data-port", "7000-7009",
              "--verbose")
    options, = stage.asked("source")
    key = options.pop("key")
    assert key.startswith("dmigrate-key-1 ")
    assert 3590000 < options.pop("timeout_ms") <= 3600000
    migration = options.pop("id")
    tunnel = options.pop("tunnel")
    assert options == {
        "container": "web", "name": "web2", "destination": "ssh://root@b:2222", "host": "real-b", "port": 7000, "source": "keep",
        "tcp": "close", "volumes": "none", "exec": "drop", "exec_wait_ms": 10000, "dry_run": False, "verbose": True,
        "binds": [{"path": "/a=b", "mode": "share"}, {"path": "/c", "mode": "copy"}]}
    assert tunnel[1:] == ["-p", "2222", "-l", "root", "-o", "BatchMode=yes", "-W", "127.0.0.1:7000", "--", "b"]
    there, = stage.asked("bootstrap")
    assert there["args"] == ["--bootstrap", "--id", migration, "--data-port", "7000-7009"]
    assert there["key"] == key.rstrip("\n") + "\n"


def test_dmigrated_is_detached(stage):
    stage.play(report=report())
    stage.run("migrate", "web", "ssh://b")
    session, = stage.asked("session")
    assert session["sid"] != os.getsid(0)
    assert session["fds"][:3] == [0, 1, 2]
    assert len(session["fds"]) == 5  # stdio, the ready pipe and the folder being listed


def test_report_for_people(stage):
    stage.play(events=[STATUS, DRAIN], report=report())
    done = stage.run("migrate", "web", "ssh://b")
    assert done.stdout.splitlines()[0].startswith("web moved to ssh://b  (migration ")
    table = [line.split() for line in done.stdout.splitlines()]
    assert ["connect", "12", "ms", "-"] in table
    assert ["commit", "3.0", "ms", "1.5", "ms"] in table
    assert ["downtime", "84", "ms"] in table
    assert "  warning: slow disk" in done.stdout
    assert done.stderr.splitlines() == ["check      95 ms", "drain      3.1 s"]


def test_json_is_the_report_alone(stage):
    stage.play(events=[STATUS, DRAIN], report=report())
    done = stage.run("migrate", "web", "ssh://b", "--json")
    assert json.loads(done.stdout)["downtime_ms"] == 84
    assert done.stderr == ""


def test_quiet(stage):
    stage.play(events=[STATUS], report=report())
    done = stage.run("migrate", "web", "ssh://b", "--quiet")
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("result,code", [("refused", 3), ("failed", 4), ("cancelled", 5), ("incomplete", 6), ("unknown", 7)])
def test_exit_code_and_message_of_the_report(stage, result, code):
    stage.play(report=failed(result, code, "no\033[2J room"))
    done = stage.run("migrate", "web", "ssh://b", code=code)
    assert done.stderr == "dmigrate: destination: no?[2J room\n"
    done = stage.run("migrate", "web", "ssh://b", "--json", code=code)
    assert json.loads(done.stdout)["result"] == result


def test_live_line_on_a_terminal(stage):
    stage.play(events=[STATUS, DRAIN], report=report())
    master, slave = pty.openpty()
    running = stage.start("migrate", "web", "ssh://b", stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        shown += piece
    assert running.wait(10) == 0
    assert b"\r\033[Kdrain       45 %  135.0 MB of 300.0 MB  112.0 MB/s  1.5 s left" in shown
    assert shown.endswith(b"drain      3.1 s\r\n")


def interrupt(stage, running, until):
    """SIGINT once the progress shows until."""
    for line in running.stderr:
        if until in line:
            break
    running.send_signal(signal.SIGINT)
    return running.communicate(timeout=20)


def test_interrupt_before_commit_cancels(stage):
    stage.play(events=[STATUS, {**STATUS, "phase": "stage"}, {"wait": "cancel"}], report=failed("cancelled", 5, "cancelled", "source"))
    running = stage.start("migrate", "web", "ssh://b", stderr=-1)
    out, err = interrupt(stage, running, "check")
    assert running.returncode == 5
    assert err.splitlines()[0] == "Cancelling ..."
    assert "web to ssh://b: cancelled" in out
    assert {"op": "cancel"} in stage.asked("request")


def test_interrupt_after_commit_detaches(stage):
    stage.play(events=[STATUS, DRAIN, {"wait": "cancel"}], report=report())
    running = stage.start("migrate", "web", "ssh://b", stderr=-1)
    _, err = interrupt(stage, running, "check")
    assert running.returncode == 6
    migration = stage.asked("source")[0]["id"]
    assert f"dmigrate status {migration} --watch" in err
    assert {"op": "cancel"} not in stage.asked("request")
    stage.run("cancel", migration)


def test_cancel_that_comes_too_late(stage):
    stage.play(events=[STATUS, {**STATUS, "phase": "ready"}, {"wait": "cancel"}], cancel="already committed", report=report())
    running = stage.start("migrate", "web", "ssh://b", stderr=-1)
    _, err = interrupt(stage, running, "check")
    assert running.returncode == 6
    assert "Cannot cancel: already committed" in err


def test_unknown_tells_what_to_do(stage):
    stage.play(events=[STATUS, {**STATUS, "phase": "commit", "state": "unknown"}], report=failed("unknown", 7, "no answer"))
    done = stage.run("migrate", "web", "ssh://b", code=7)
    assert f"dmigrate resolve {stage.asked('source')[0]['id']} --source or --destination" in done.stderr


def test_detach_prints_the_id(stage):
    stage.play(events=[{"wait": "cancel"}], report=report())
    done = stage.run("migrate", "web", "ssh://b", "--detach")
    assert done.stdout.strip() == stage.asked("source")[0]["id"]
    stage.run("cancel", done.stdout.strip())


def test_dmigrated_cannot_start(stage):
    stage.play(ready="no such container: web")
    done = stage.run("migrate", "web", "ssh://b", code=4)
    assert done.stderr == "dmigrate: no such container: web\n"
    (stage.bin / "dmigrated").unlink()
    (stage.bin / "dmigrated").write_text("#!/bin/sh\nexit 3\n")
    (stage.bin / "dmigrated").chmod(0o755)
    assert "dmigrated ended before it was ready; see " in stage.run("check", "web", code=4).stderr
    (stage.bin / "dmigrated").write_text("#!/bin/sh\necho 'dmigrated: too bad' >&2\nexit 3\n")
    assert stage.run("check", "web", code=4).stderr == "dmigrate: too bad\n"


def test_dmigrated_dies(stage):
    stage.play(events=[STATUS, {"die": True}], report=report())
    done = stage.run("migrate", "web", "ssh://b", code=7)
    assert "dmigrated ended unexpectedly" in done.stderr
    assert "ended without a report" in done.stderr


def test_check(stage):
    stage.play(report=report(phases=[], downtime_ms=None, dry_run=True))
    done = stage.run("check", "web", "ssh://b")
    assert "web to ssh://b: nothing stands in the way" in done.stdout
    assert stage.asked("source")[0]["dry_run"] is True
    stage.run("check", "web")
    here = stage.asked("source")[1]
    assert (here["destination"], here["host"], here["port"], here["key"]) == ("", "", 0, "")
    stage.run("migrate", "web", "ssh://b", "--dry-run")
    assert stage.asked("source")[2]["dry_run"] is True


def test_tls_takes_the_key_file(stage):
    key = stage.folder / "key"
    stage.play(report=report())
    stage.run("key", "new", str(key))
    stage.run("migrate", "web", "tls://10.0.0.2:7788", "--key", str(key))
    options, = stage.asked("source")
    assert (options["host"], options["port"], options["key"].strip()) == ("10.0.0.2", 7788, key.read_text().strip())
    assert "tunnel" not in options


@pytest.mark.parametrize("case", [
    dict(host="unreachable", part="ssh cannot reach the host"),
    dict(env={"FAKE_USER": "me", "FAKE_SUDO": "no"}, part="allow sudo without a password"),
    dict(env={"FAKE_PATH": "/usr/bin:/bin"}, part="dmigrated is not installed there"),
    dict(bootstrap=None, bootstrap_exit=9, part="did not start there (exit code 9)"),
    dict(bootstrap='{"error": "no CRIU here"}', part="destination: ssh://b: no CRIU here"),
    dict(bootstrap='{"port": 0}', part="did not answer with a port"),
    dict(bootstrap="{", part="did not answer with a port"),
])
def test_bootstrap_failures_are_explained(stage, case):
    stage.play(bootstrap=case.get("bootstrap", "{}"), bootstrap_exit=case.get("bootstrap_exit", 0))
    stage.env.update(case.get("env", {}))
    done = stage.run("migrate", "web", f"ssh://{case.get('host', 'b')}", code=4)
    assert case["part"] in done.stderr
    assert stage.asked("source") == []


def test_findings_stand_on_lines_of_their_own(stage):
    stage.play(report=failed("refused", 3, "cannot be moved:\n  a: b\033\n  c: d", "source"))
    done = stage.run("migrate", "web", "ssh://b", code=3)
    assert done.stderr == "dmigrate: source: cannot be moved:\n  a: b?\n  c: d\n"


def test_dmigrated_elsewhere(stage):
    stage.play(report=report())
    stage.env["FAKE_PATH"] = "/usr/bin:/bin"
    stage.env["DMIGRATE_REMOTE"] = str(stage.bin / "dmigrated")
    stage.run("migrate", "web", "ssh://b")
    assert len(stage.asked("bootstrap")) == 1
    stage.env["DMIGRATE_REMOTE"] = "a;b"
    stage.run("migrate", "web", "ssh://b", code=2)


def test_sudo_unless_root(stage):
    stage.play(report=report())
    stage.run("migrate", "web", "ssh://me@b")
    command = stage.asked("ssh")[1]
    assert command[command.index("--") + 2:][:4] == ["sudo", "-n", "dmigrated", "--bootstrap"]


@pytest.mark.parametrize("args", [
    ["http://b"], ["b"], ["ssh://"], ["ssh://-oProxyCommand=x"], ["ssh://a b"], ["ssh://u:p@b"], ["ssh://b:0"], ["ssh://b:x"],
    ["ssh://[::1"], ["ssh://b/path"], ["ssh://-u@b"], ["tls://b"], ["tls://b:1", "--key", "/nonexistent"],
    ["ssh://b", "--key", "/x"], ["tls://b:1", "--data-port", "5"], ["ssh://b", "--bind", "rel=copy"], ["ssh://b", "--tcp", "maybe"],
])
def test_bad_input_changes_nothing(stage, args):
    stage.play()
    done = stage.run("migrate", "web", *args, code=2)
    assert done.stderr.startswith("dmigrate: ") and done.stderr.count("\n") == 1
    assert stage.asked("ssh") == [] and stage.asked("source") == []


def test_interrupt_that_arrives_twice_is_one(stage):
    stage.play(events=[STATUS, {**STATUS, "phase": "stage"}, {"wait": "cancel"}, {"sleep": 1.5}],
               report=failed("cancelled", 5, "cancelled", "source"))
    running = stage.start("migrate", "web", "ssh://b", stderr=-1)
    for line in running.stderr:
        if "check" in line:
            running.send_signal(signal.SIGINT)
        if "Cancelling" in line:
            running.send_signal(signal.SIGINT)
            break
    out, _ = running.communicate(timeout=20)
    assert running.returncode == 5
    assert "web to ssh://b: cancelled" in out


def test_interrupt_again_leaves(stage):
    stage.play(events=[STATUS, {**STATUS, "phase": "stage"}, {"wait": "cancel"}, {"sleep": 10}],
               report=failed("cancelled", 5, "cancelled", "source"))
    running = stage.start("migrate", "web", "ssh://b", stderr=-1)
    for line in running.stderr:
        if "check" in line:
            running.send_signal(signal.SIGINT)
        if "Cancelling" in line:
            break
    time.sleep(1)  # the two must be told apart
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=20)
    assert running.returncode == 5
    assert "is still being cancelled" in err
