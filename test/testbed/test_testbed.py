# SPDX-License-Identifier: GPL-2.0-or-later
"""The testbed itself: what the end-to-end tests rely on."""

import os
import signal
import subprocess
import time

import pytest

import testbed
from testbed import cgroups, paths

TRAFFIC = paths.SOURCE / "traffic.py"
CONTAINER = "10.88.0.50"


def name_for(request):
    """A name no other test run on this machine has."""
    return f"self-{os.getpid()}-{abs(hash(request.node.name)) % 10000}"


@pytest.fixture(scope="module")
def bed(request):
    """A testbed most tests share; each leaves its links as they were."""
    with testbed.Testbed.up(name_for(request)) as up:
        up.network()
        yield up
        name = up.name
    assert not testbed.leftovers(name)


def rate(client, server, address, mebibytes):
    """Mbit/s of one TCP connection from client to server."""
    with server.popen([TRAFFIC, "serve", address], stdout=subprocess.PIPE) as listening:
        listening.stdout.readline()
        return float(client.output([TRAFFIC, "send", address, str(mebibytes)], timeout=60))


def test_hosts_are_separate(bed):
    """Each host has its own Docker, name, processes, cgroups and directories."""
    for host in bed.docker_hosts:
        assert host.docker("info", "--format", "{{.Name}}") == host.name
        assert host.output(["cat", "/proc/1/comm"]).startswith("init-")
        assert not host.output(["grep", "dmigrate", "/proc/self/cgroup"], check=False)
    bed.a.run(["touch", "/run/mark", "/tmp/mark", "/etc/mark", "/var/lib/docker/mark"])
    for place in ("/run", "/tmp", "/etc", "/var/lib/docker"):
        assert bed.b.run(["test", "-e", f"{place}/mark"], check=False).returncode == 1
        assert not os.path.exists(f"{place}/mark")
    bed.a.run(["rm", "/var/lib/docker/mark"])


def test_exec(bed):
    """Exit codes, signals, environment and the host's cgroup."""
    assert bed.a.run(["sh", "-c", "exit 3"], check=False).returncode == 3
    assert bed.a.run(["sh", "-c", "kill -9 $$"], check=False).returncode == 128 + 9
    assert bed.a.run(["no-such-program"], check=False).returncode == 127
    assert bed.a.output(["sh", "-c", "echo $HOME"]) == "/root"
    sleep = ["sh", "-c", "echo ready; exec sleep 20"]
    with bed.a.popen(sleep, stdout=subprocess.PIPE) as sleeping:
        sleeping.stdout.readline()
        assert sleeping.pid in cgroups.processes(bed.a.facts["cgroups"][0]["root"])
        sleeping.send_signal(signal.SIGTERM)
        assert sleeping.wait(10) == 128 + signal.SIGTERM


def test_orphans_are_reaped(bed):
    """Pid 1 leaves no zombies: a dead init's number must become free."""
    pid = bed.a.output(["sh", "-c", "(sleep 0.05 & echo $!)"])
    # ends when the number is free, which only reaping makes it
    bed.a.run(["timeout", "10", "sh", "-c", f"while kill -0 {pid} 2>/dev/null; do :; done"])


def test_ssh(bed):
    """root logs in from host to host."""
    assert bed.a.output(["ssh", "root@10.77.0.2", "hostname"]) == "b"
    assert bed.b.output(["ssh", "root@a", "docker info --format '{{.Name}}'"]) == "a"


def test_container_address_moves(bed):
    """A container's address answers wherever it is, from both hosts and from the client."""
    bed.image("python")
    serve = ["python3", "-m", "http.server", "80"]
    for host in bed.docker_hosts:
        container = host.docker("run", "-d", "--network", "lan", "--ip", CONTAINER, "python", *serve)
        announce(host, container)
        wait_for_port(bed.client, CONTAINER, 80)
        for end in bed.ends:
            end.run([TRAFFIC, "connect", CONTAINER, "80"])
        host.docker("rm", "--force", container)


def announce(host, container):
    """Let the container send a frame: switch and client still believe it to be where it was. Docker
    20.10 announces nothing, and the second container has the MAC address of the first."""
    hello = "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('10.88.0.200', 9))"
    host.docker("exec", container, "python3", "-c", hello)


def wait_for_port(host, address, port):
    """Until something listens there."""
    host.run(["timeout", "30", "sh", "-c",
              f"until {TRAFFIC} connect {address} {port} 2>/dev/null; do sleep 0.1; done"])


def test_image_configuration(bed):
    """An image keeps what its recipe says, and its server runs as its own user."""
    bed.image("redis", ["a"])
    shown = bed.a.docker("inspect", "--format", "{{json .Config}}", "redis")
    assert '"Volumes":{"/data":{}}' in shown and '"ExposedPorts":{"6379/tcp":{}}' in shown
    container = bed.a.docker("run", "-d", "redis")
    bed.a.run(["timeout", "20", "sh", "-c",
               f"until docker exec {container} redis-cli ping 2>/dev/null | grep -q PONG; do :; done"])
    users = [line.split()[1] for line in bed.a.docker("top", container, "-eo", "pid,uid").splitlines()]
    assert users[0] == "UID" and len(users) > 1 and "0" not in users
    bed.a.docker("rm", "--force", "--volumes", container)


@pytest.mark.parametrize("image, port, user", [("nginx", 80, "www-data"), ("postgres", 5432, "postgres")])
def test_servers_start(bed, image, port, user):
    """A prefork nginx and a PostgreSQL of its own user answer."""
    bed.image(image, ["b"])
    container = bed.b.docker("run", "-d", "--network", "lan", "--ip", "10.88.0.51", image)
    wait_for_port(bed.b, "10.88.0.51", port)
    uid = bed.b.docker("exec", container, "id", "-u", user)
    users = [line.split()[1] for line in bed.b.docker("top", container, "-eo", "pid,uid").splitlines()]
    assert users.count(uid) >= 4
    bed.b.docker("rm", "--force", "--volumes", container)


@pytest.mark.parametrize("limit", [50, 400])
def test_shape_limits(bed, limit):
    """A link carries its rate in both directions, and no more."""
    bed.shape("a", f"{limit}mbit")
    try:
        size = limit // 10  # about a second
        there = rate(bed.a, bed.b, "10.77.0.2", size)
        back = rate(bed.b, bed.a, "10.77.0.1", size)
        lan = rate(bed.client, bed.a, "10.88.0.1", size)
    finally:
        bed.shape("a", None)
    for measured in (there, back, lan):
        assert 0.8 * limit < measured < 1.1 * limit


def test_delay(bed):
    """A delayed link adds its delay once in each direction, and shaping still holds."""
    bed.shape("a", "100mbit", "20ms")
    try:
        took = float(bed.b.output([TRAFFIC, "connect", "10.77.0.1", "22"]))
        measured = rate(bed.a, bed.b, "10.77.0.2", 20)
    finally:
        bed.shape("a", None)
    assert 40 <= took < 60
    assert 50 < measured < 110
    assert float(bed.b.output([TRAFFIC, "connect", "10.77.0.1", "22"])) < 20


@pytest.mark.parametrize("net, address", [("mgmt", "10.77.0.1"), ("lan", "10.88.0.1")])
def test_cut_is_silent(bed, net, address):
    """A connection over a cut link hangs without an error, and goes on when it is healed."""
    talk = ("import socket, sys\n"
            f"s = socket.create_connection(('{address}', 22))\n"
            "s.recv(1000); print('up', flush=True); sys.stdin.readline()\n"
            "s.sendall(b'nonsense\\r\\n'); s.settimeout(1)\n"
            "try: s.recv(1000)\n"
            "except TimeoutError: print('silent', flush=True)\n"
            "s.settimeout(20); print('answer' if s.recv(1000) else 'end', flush=True)\n")
    with bed.b.popen(["python3", "-c", talk], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     text=True) as talking:
        assert talking.stdout.readline() == "up\n"
        bed.cut("a", net)
        try:
            talking.stdin.write("go\n")
            talking.stdin.flush()
            assert talking.stdout.readline() == "silent\n"
        finally:
            bed.heal("a", net)
        assert talking.stdout.readline() == "answer\n"


@pytest.mark.parametrize("docker, cgroup", [("28", "v2"), ("28-containerd", "v2"),
                                            ("28-runc13", "v1")])
def test_versions(request, docker, cgroup):
    """Every choice of Docker runs a container, alone in the cgroups it sees."""
    if cgroup == "v1" and not cgroups.has_v1():
        pytest.skip("no cgroup v1 on this machine")
    name = name_for(request)
    with testbed.Testbed.up(name, docker=docker, cgroup=cgroup) as bed:
        bed.image("busybox")
        for host in bed.docker_hosts:
            assert host.docker("version", "--format", "{{.Server.Version}}").startswith("28.")
            assert host.docker("info", "--format", "{{.CgroupVersion}}") == cgroup[1:]
            assert host.docker("run", "--rm", "--init", "busybox", "echo", "hello") == "hello"
    assert not testbed.leftovers(name)


def test_uptime(request):
    """Hosts may have been up for different times."""
    with testbed.Testbed.up(name_for(request), uptime_b=1000000) as bed:
        a, b = (float(host.output(["cat", "/proc/uptime"]).split()[0]) for host in bed.docker_hosts)
        assert 999000 < b - a < 1001000
        bed.image("busybox", ["b"])
        inside = bed.b.docker("run", "--rm", "busybox", "cat", "/proc/uptime")
        assert float(inside.split()[0]) > 1000000


def test_down_after_a_crash(request):
    """Whatever died, down finds the rest: here a host, and a frozen container on the other."""
    name = name_for(request)
    bed = testbed.Testbed.up(name)
    bed.image("busybox", ["b"])
    container = bed.b.docker("run", "-d", "busybox", "sleep", "1000")
    bed.b.docker("pause", container)
    os.kill(bed.a.pid, signal.SIGKILL)
    os.kill(bed.b.facts["daemons"]["dockerd"], signal.SIGKILL)
    (paths.STATE / name / "state.json").unlink()
    start = time.monotonic()
    testbed.down(name)
    assert time.monotonic() - start < 10
    assert not testbed.leftovers(name)
