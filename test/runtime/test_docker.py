# SPDX-License-Identifier: GPL-2.0-or-later
"""Restore through the runtime under real Docker; variants by DMIGRATE_RUNTIME_VARIANTS."""

import json
import os
import time

import bed as beds
import docker_bed
import pytest
import testbed
from docker_bed import Source, Target

CHOSEN = os.environ.get("DMIGRATE_RUNTIME_VARIANTS", "20.10-v1,28-v2").split(",")
FETCH = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8080/p').read().decode(), end='')"


@pytest.fixture(scope="module", params=CHOSEN)
def docker(request):
    """Two hosts, the runtime registered on the second."""
    made = testbed.Testbed.up(name=f"runtime-{os.getpid()}", **docker_bed.VARIANTS[request.param])
    try:
        made.image("busybox")
        docker_bed.register(made, made.b)
        made.variant = request.param
        yield made
    finally:
        made.down()


@pytest.fixture
def make_target(docker):
    """Function that makes targets; all end with the test."""
    made = []

    def make(*options, **more):
        made.append(Target(docker, *options, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def gone(target):
    """Nothing of it is left on the host."""
    target.driver.kill()
    beds.wait_for(lambda: target.helper_pid() is None, "the helper to end")
    assert target.remains().split() == ["/run/dmigrate/target:", "/var/lib/dmigrate/targets:"]


def moved(docker, make_target, *options, **more):
    """A container that was moved, running at host b."""
    source = Source(docker, *options, **more)
    more.pop("external", None)
    more.pop("tty", None)
    target = make_target("--hostname", source.hostname, *options, **more)
    pid = target.start()
    target.restore(source)
    assert target.state()["Status"] == "running" and target.state()["Pid"] == pid
    assert target.ticks() == [], "ran before it was allowed to"
    target.finish()
    beds.wait_for(lambda: source.tty_key or target.ticks(), "the first line")
    return source, target


def test_ordinary_container_afterwards(docker, make_target, record_property):
    source, target = moved(docker, make_target)
    assert target.ticks()[0] == source.last_tick + 1
    pid = target.state()["Pid"]
    assert target.exec("echo", "hi") == "hi"
    assert target.exec("hostname") == source.hostname
    assert "usleep" in target.host.docker("top", target.name) or "sh -c" in target.host.docker("top", target.name)
    assert target.host.docker("stats", "--no-stream", "--format", "{{.Name}}", target.name) == target.name
    target.host.docker("pause", target.name)
    before = target.ticks()
    time.sleep(0.2)
    assert target.ticks() == before and target.state()["Paused"]
    target.host.docker("unpause", target.name)
    beds.wait_for(lambda: target.ticks() != before, "it to go on")
    assert target.state()["Pid"] == pid
    target.host.docker("stop", target.name)
    assert target.state()["ExitCode"] == 4
    target.host.docker("start", target.name)
    beds.wait_for(lambda: target.ticks().count(1) == 1, "a fresh start")
    target.host.docker("restart", "-t", "5", target.name)
    for step, ms in {**target.marks, **{k.split()[0]: v for k, v in target.driver.times.items()}}.items():
        record_property(f"{docker.variant} {step}", ms)
    print(docker.variant, json.dumps(target.marks), json.dumps(target.driver.times))
    target.remove()
    gone(target)


def test_runs_in_the_targets_cgroup_with_its_limits(docker, make_target):
    _, target = moved(docker, make_target, *([] if "v2" in docker.variant else ["--pids-limit", "20"]))
    pid = target.state()["Pid"]
    lines = target.host.output(["cat", f"/proc/{pid}/cgroup"]).splitlines()
    assert any(target.id in line for line in lines)
    assert not [line for line in lines if "docker/" in line and target.id not in line]
    inside = target.exec("cat", "/proc/self/cgroup").splitlines()
    if "v2" in docker.variant:
        assert inside[-1] == "0::/", inside
    else:
        path = next(line for line in lines if "pids" in line).split(":")[2]
        mount = target.host.output(["sh", "-c", "findmnt -rno TARGET -t cgroup | grep pids"])
        limit = target.host.run(["cat", f"{mount}{path}/pids.max"], check=False).stdout.strip()
        assert limit in ("20", "")
    target.remove()
    gone(target)


def test_health_probe_and_init(docker, make_target):
    options = ["--init", "--health-cmd", "true", "--health-interval", "300ms"]
    _, target = moved(docker, make_target, *options)
    beds.wait_for(lambda: target.state()["Health"]["Status"] == "healthy", "the health probe")
    assert target.exec("sh", "-c", "cat /proc/1/comm").strip() in ("docker-init", "tini")
    target.host.docker("stop", target.name)
    target.remove()
    gone(target)


def test_probe_waits_while_the_container_does(docker, make_target):
    source = Source(docker)
    target = make_target("--hostname", source.hostname)
    target.start()
    waiting = target.host.popen(["docker", "exec", target.name, "echo", "waited"], stdout=-1, text=True)
    target.restore(source)
    assert waiting.poll() is None
    target.finish()
    assert waiting.communicate(timeout=beds.PATIENCE)[0] == "waited\n"


def test_published_port_names_and_second_network(docker, make_target):
    docker.b.docker("network", "create", "second")
    docker.a.docker("network", "create", "second")
    try:
        options = ["--network", "second", "-p", "8080:80"]
        source = Source(docker, *options)
        target = make_target("--hostname", source.hostname, *options)
        target.start()
        target.host.docker("network", "connect", "bridge", target.name)
        target.restore(source)
        target.finish()
        beds.wait_for(target.ticks, "the first line")
        assert "eth1" in target.exec("cat", "/proc/net/dev")
        assert "127.0.0.11" in target.exec("cat", "/etc/resolv.conf")
        target.exec("sh", "-c", f"nslookup {target.name} 127.0.0.11 || ping -c 1 -w 2 {target.name}")
        target.exec("sh", "-c", "mkdir -p /tmp/w; echo page > /tmp/w/p; busybox httpd -p 80 -h /tmp/w")
        assert target.host.output(["/usr/bin/python3", "-c", FETCH]) == "page"
        target.remove()
        gone(target)
    finally:
        for host in (docker.a, docker.b):
            host.run(["docker", "network", "rm", "second"], check=False)


@pytest.mark.parametrize("mode", ["none", "host"])
def test_network_modes(docker, make_target, mode):
    source = Source(docker, "--network", mode, external=mode == "none")
    target = make_target("--network", mode, *([] if mode == "host" else ["--hostname", source.hostname]))
    target.start()
    target.restore(source)
    target.finish()
    beds.wait_for(target.ticks, "the first line")
    pid = target.state()["Pid"]
    same = target.host.output(["sh", "-c", f"readlink /proc/{pid}/ns/net /proc/1/ns/net | uniq | wc -l"]) == "1"
    assert same == (mode == "host")
    target.remove()
    gone(target)


def test_volume(docker, make_target):
    options = ["-v", "data:/data", "--tmpfs", "/scratch"]
    _, target = moved(docker, make_target, *options)
    target.exec("sh", "-c", "echo x > /data/x; echo y > /scratch/y")
    assert target.host.output(["sh", "-c", "cat $(docker volume inspect -f '{{.Mountpoint}}' data)/x"]) == "x"
    target.remove()
    docker.a.docker("volume", "rm", "data")
    docker.b.docker("volume", "rm", "data")


def test_remove_on_exit(docker, make_target):
    source = Source(docker)
    target = make_target("--rm", "--hostname", source.hostname)
    target.start()
    target.restore(source)
    target.finish()
    beds.wait_for(target.ticks, "the first line")
    target.host.docker("stop", target.name)
    beds.wait_for(lambda: not target.host.docker("ps", "-aq", "--filter", f"name={target.name}"), "its removal")
    gone(target)


def test_terminal(docker, make_target):
    script = "trap 'exit 130' INT; while read line; do echo got $line; stty size; done"
    source = Source(docker, "-it", command=("sh", "-c", script), tty=True)
    target = make_target("-it", "--hostname", source.hostname, command=("sh", "-c", script))
    target.start()
    target.restore(source)
    target.finish()
    attach = target.host.popen(["script", "-qec", f"stty cols 101 rows 33; docker attach {target.name}", "/dev/null"],
                               stdin=-1, stdout=-1, stderr=-1)
    attach.stdin.write(b"hello\n")
    attach.stdin.flush()
    beds.wait_for(lambda: "got hello" in target.host.docker("logs", target.name), "the echo")
    attach.kill()
    pid = target.state()["Pid"]
    stat = target.host.output(["cat", f"/proc/{pid}/stat"])
    assert stat.rsplit(")", 1)[1].split()[4] == "34816", "no controlling terminal"
    assert target.exec("echo", "hi") == "hi"
    target.remove()
    gone(target)


# ---- failures


def ended(target):
    """Docker says that it ended, as if killed."""
    beds.wait_for(lambda: target.state()["Status"] == "exited", "Docker to see the end")
    assert target.state()["ExitCode"] == 137


@pytest.mark.parametrize("moment", ["waiting", "vacated", "root-host-pid", "pre-resume"])
def test_undo(docker, make_target, moment):
    source = Source(docker)
    target = make_target("--hostname", source.hostname)
    target.start()
    if moment == "vacated":
        target.driver("vacate")
    elif moment != "waiting":
        target.restore(source, moment)
    start = time.monotonic()
    target.driver("undo")
    ended(target)
    assert time.monotonic() - start < 5
    assert target.ticks() == []
    result = target.host.run(["docker", "start", target.name], check=False)
    assert result.returncode != 0 and "migration" in result.stderr
    target.remove()
    gone(target)


def test_docker_stop_while_waiting(docker, make_target):
    target = make_target()
    target.start()
    target.driver("vacate")
    stop = target.host.popen(["docker", "stop", "-t", "3", target.name])
    beds.wait_for(lambda: fails(target, "check"), "the cancel")
    target.driver("undo")
    assert stop.wait(beds.PATIENCE) == 0
    ended(target)
    target.remove()
    gone(target)


def fails(target, command):
    """Whether the driver answers with an error."""
    try:
        target.driver(command)
    except beds.DriverError:
        return True
    return False


def test_inspect_logs_ps_while_waiting(docker, make_target):
    target = make_target()
    target.start()
    target.driver("vacate")
    start = time.monotonic()
    assert target.state()["Running"]
    assert target.host.docker("logs", target.name) == ""
    target.host.run(["docker", "top", target.name], check=False)
    assert target.host.run(["docker", "pause", target.name], check=False).returncode != 0
    assert target.host.run(["docker", "kill", "-s", "HUP", target.name], check=False).returncode != 0
    assert time.monotonic() - start < 8
    assert not target.state()["Paused"]
    target.driver("undo")
    ended(target)
    target.remove()
    gone(target)


@pytest.mark.parametrize("moment", ["waiting", "pre-resume"])
def test_owner_dies(docker, make_target, moment):
    source = Source(docker)
    target = make_target("--hostname", source.hostname)
    target.start()
    if moment == "pre-resume":
        target.restore(source)
    target.driver.kill()
    ended(target)
    target.driver = docker_bed.Driver(target.host, target.id, target.run_dir)
    target.driver("recover")
    assert target.ticks() == []
    target.remove()
    gone(target)


def test_owner_and_helper_die(docker, make_target):
    source = Source(docker)
    target = make_target("--hostname", source.hostname)
    target.start()
    target.restore(source, "root-host-pid")
    target.host.run(["kill", "-9", str(target.helper_pid())])
    target.driver.kill()
    target.driver = docker_bed.Driver(target.host, target.id, target.run_dir)
    target.driver("recover")
    target.remove()
    gone(target)


def test_restart_policy_never_makes_a_fresh_copy(docker, make_target):
    target = make_target("--restart", "always")
    target.start()
    target.driver("vacate")
    target.driver("undo")
    time.sleep(1)
    assert target.ticks() == []
    target.remove()
    gone(target)


@pytest.mark.parametrize("moment", ["vacated", "pre-resume"])
def test_shim_dies(docker, make_target, moment):
    """containerd gives the container up; nothing may run on."""
    source = Source(docker)
    target = make_target("--hostname", source.hostname)
    pid = target.start()
    target.driver("vacate")
    if moment == "pre-resume":
        target.continue_restore(source)
    shim = target.host.output(["pgrep", "-f", f"containerd-shim.* -id {target.id}"]).split()[0]
    target.host.run(["kill", "-9", shim])
    beds.wait_for(lambda: fails(target, "check"), "the cancel")
    target.driver("undo")
    beds.wait_for(lambda: target.state()["Status"] == "exited", "Docker to see the end")
    assert target.ticks() == []
    assert not target.host.path(f"/proc/{pid}").exists()
    target.remove()
    gone(target)


def test_dockerd_restarts_while_waiting(docker, make_target):
    """With live-restore, as hosts have that are not to lose containers with their daemon."""
    host = docker.b
    path = host.path("/etc/docker/daemon.json")
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "live-restore": True}))
    docker.restart_docker("b")
    try:
        source = Source(docker)
        target = make_target("--hostname", source.hostname)
        target.start()
        docker.restart_docker("b")
        target.restore(source)
        target.finish()
        beds.wait_for(target.ticks, "the first line")
        assert target.exec("echo", "hi") == "hi"
        target.host.docker("stop", target.name)
        assert target.state()["ExitCode"] == 4
        target.remove()
    finally:
        path.write_text(json.dumps(config))
        docker.restart_docker("b")


def test_second_move_of_the_same_container(docker, make_target):
    """What was restored can be dumped again, with dmigrated long gone."""
    _, target = moved(docker, make_target)
    target.driver.kill()
    inode = target.host.output(["stat", "-L", "-c", "%i", f"/proc/{target.state()['Pid']}/ns/net"]).strip()
    conf = docker.shared / "again.conf"
    conf.write_text(f"network-lock skip\nexternal net[{inode}]:extRootNetNS\n")
    images = docker.shared / f"again-{target.name}"
    target.host.run(["env", f"PATH={beds.CRIU_DIR}:/usr/sbin:/usr/bin:/sbin:/bin", f"CRIU_CONFIG_FILE={conf}", "runc",
                     "--root", docker_bed.ROOT, "checkpoint", "--image-path", images, "--work-path", f"{images}-work",
                     target.id])
    ended(target)
    target.host.docker("rm", target.name)
