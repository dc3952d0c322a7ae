# SPDX-License-Identifier: GPL-2.0-or-later
"""A target from create to commit, and what Docker may ask meanwhile."""

import json
import os
import shutil
import subprocess
import time

import bed as beds
import pytest
from steps import continue_up_to, ends_and_goes, finish, nothing_left, ran, restore_up_to


def test_whole_life(bed, dumped):
    pid = bed.start_waiting()
    restore_up_to(bed, dumped)
    assert not ran(bed), "before it was allowed to"
    finish(bed)
    beds.wait_for(lambda: bed.count() > dumped.dumped_at, "the counter to go on")
    assert bed.state()["pid"] == pid
    assert bed.state()["bundle"] == str(bed.bundle)
    assert bed.execute("echo", "hi") == (0, "hi\n")
    assert f"tick {dumped.dumped_at + 1}\n" in [e.get("output") for e in bed.shim.drain()]
    assert bed.signal("KILL")[0] == 0
    assert bed.shim.exit_of(pid) == 137
    # Nobody else holds the container's pipes: their end arrives.
    bed.shim.wait(lambda e: e.get("eof") == 1)
    bed.shim.wait(lambda e: e.get("eof") == 2)
    assert bed.runtime("delete")[0] == 0
    nothing_left(bed)


def test_pid_is_that_of_the_placeholder_and_zombie_keeps_it(bed, dumped):
    pid = bed.start_waiting()
    restore_up_to(bed, dumped, "root-host-pid")
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        assert f.read().rsplit(")", 1)[1].split()[0] == "Z"
    bed.driver("undo")
    assert bed.shim.exit_of(pid) == 137


def test_no_record_is_plain_runc(bed):
    status, output = bed.shim.run("version", "--version")
    assert status == 0 and output.startswith("runc version")
    status, output = bed.shim.run("features", "features")
    assert "runc" in output or status == 0
    assert bed.runtime("state")[0] == 1
    assert bed.create()[0] == 0
    assert bed.state()["status"] == "created"
    assert bed.runtime("start")[0] == 0
    beds.wait_for(lambda: (bed.bundle / "rootfs" / "count").exists(), "a fresh start")
    assert bed.runtime("delete", "--force")[0] == 0


def test_no_owner_never_starts_a_fresh_copy(bed):
    bed.driver("new")
    bed.driver.kill()
    status, _ = bed.create()
    assert status == 1
    assert "target of a migration" in bed.error()
    assert bed.state() is None
    bed.driver = beds.Driver(bed)
    bed.driver("recover")
    assert bed.create()[0] == 1, "the record must outlive the recovery"
    nothing_left(bed)


def test_create_twice_is_refused(bed):
    bed.start_waiting()
    assert bed.create()[0] == 1
    assert "already" in bed.error()
    assert bed.runtime("start")[0] == 1
    bed.driver("undo")


def test_answers_while_waiting(bed, dumped):
    pid = bed.start_waiting()
    bed.driver("vacate")
    status, output = bed.runtime("state")
    assert status == 0 and json.loads(output)["status"] == "running" and json.loads(output)["pid"] == pid
    assert bed.shim.run("ps", *bed.globals(), "ps", "--format", "json", bed.id) == (0, f"[{pid}]\n")
    for command in ("pause", "resume", "events"):
        assert bed.runtime(command)[0] == 1
        assert "being migrated" in bed.error()
    assert bed.signal("HUP")[0] == 1
    assert bed.signal("0")[0] == 0
    bed.driver("check")
    continue_up_to(bed, dumped)
    finish(bed)


def test_exec_waits_for_the_commit(bed, dumped):
    bed.start_waiting()
    bed.shim.call("exec", *bed.globals(), "exec", bed.id, "echo", "probe")
    restore_up_to(bed, dumped)
    assert not [e for e in bed.shim.drain() if e.get("called") == "exec"]
    finish(bed)
    assert bed.shim.called("exec") == (0, "probe\n")


@pytest.mark.parametrize("moment", ["started", "vacated", "pre-resume"])
def test_stop_cancels(bed, dumped, moment):
    pid = bed.start_waiting()
    if moment == "vacated":
        bed.driver("vacate")
    elif moment == "pre-resume":
        restore_up_to(bed, dumped)
    assert bed.signal("TERM")[0] == 0
    with pytest.raises(beds.DriverError, match="asked to stop") as error:
        bed.driver("check")
    assert error.value.code == 125  # ECANCELED
    bed.driver("undo")
    ends_and_goes(bed, pid)


def test_stop_interrupts_a_wait_for_criu(bed, dumped):
    pid = bed.start_waiting()
    restore_up_to(bed, dumped, "root-host-pid")
    bed.shim.call("kill", *bed.globals(), "kill", bed.id, "KILL")
    with pytest.raises(beds.DriverError, match="asked to stop"):
        bed.driver("serve never")
    assert bed.shim.called("kill")[0] == 0
    bed.driver("undo")
    assert bed.shim.exit_of(pid) == 137


def test_restore_that_fails_says_why(bed, dumped, tmp_path):
    pid = bed.start_waiting()
    bed.driver("vacate")
    for image in dumped.images.iterdir():
        if image.name != "core-1.img":
            shutil.copy(image, tmp_path)
    bed.driver(f"restore {tmp_path}")
    with pytest.raises(beds.DriverError):
        bed.driver("serve pre-resume")
    with pytest.raises(beds.DriverError, match="CRIU says: Error .*Unexpected EOF"):
        bed.driver("wait-restored 5000")
    bed.driver("undo")
    ends_and_goes(bed, pid)


def test_undo_while_criu_waits_at_pre_resume(bed, dumped):
    pid = bed.start_waiting()
    restore_up_to(bed, dumped)
    start = time.monotonic()
    bed.driver("undo")
    bed.driver("undo")
    assert time.monotonic() - start < 5
    ends_and_goes(bed, pid)


def test_undo_after_the_release(bed, dumped):
    """The commit was decided against in the last moment: who undoes may still do so."""
    pid = bed.start_waiting()
    restore_up_to(bed, dumped)
    bed.driver("release")
    bed.driver("undo")
    ends_and_goes(bed, pid)


def test_restart_after_undo_is_refused(bed):
    pid = bed.start_waiting()
    bed.driver("vacate")
    bed.driver("undo")
    assert bed.shim.exit_of(pid) == 137
    assert bed.runtime("delete")[0] == 0
    assert bed.create()[0] == 1
    bed.driver("free")
    assert bed.create()[0] == 1
    nothing_left(bed)


def test_create_hooks_do_not_run_again(make_bed, dumped):
    seen = "/run/dmigrate-test-hooks"
    open(seen, "w", encoding="ascii").close()
    hook = {"path": "/bin/sh", "args": ["sh", "-c", f"echo x >> {seen}"]}
    bed = make_bed(hooks={"prestart": [hook], "createRuntime": [hook]})
    try:
        bed.start_waiting()
        assert len(open(seen, encoding="ascii").read().splitlines()) == 2
        restore_up_to(bed, dumped)
        finish(bed)
        assert len(open(seen, encoding="ascii").read().splitlines()) == 2
    finally:
        os.unlink(seen)


def test_restored_container_can_be_dumped_again(bed, dumped, tmp_path):
    pid = bed.start_waiting()
    restore_up_to(bed, dumped)
    finish(bed)
    bed.driver("free")
    bed.driver.kill()
    conf = tmp_path / "dump.conf"
    conf.write_text("network-lock skip\n")
    env = dict(os.environ, PATH=f"{beds.CRIU_DIR}:{os.environ['PATH']}", CRIU_CONFIG_FILE=str(conf))
    result = subprocess.run([beds.RUNC, "--root", str(bed.root), "checkpoint", "--image-path", tmp_path / "again",
                             "--work-path", tmp_path / "work", bed.id], env=env, capture_output=True, text=True,
                            check=False, timeout=beds.PATIENCE)
    assert result.returncode == 0, result.stderr
    assert bed.shim.exit_of(pid) == 137


def test_two_at_once_keep_their_numbers(make_bed, dumped):
    both = [make_bed(), make_bed()]
    pids = [bed.start_waiting() for bed in both]
    for bed in both:
        restore_up_to(bed, dumped)
    for bed, pid in zip(both, pids):
        finish(bed)
        assert bed.state()["pid"] == pid
