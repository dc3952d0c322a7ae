# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis under load moves from host a to host b of a testbed: by Dmigrate, and by what Docker brings along."""

import json
import pathlib
import subprocess
import threading

import pair as pairs
import stock

PROJECT = pathlib.Path(__file__).resolve().parents[1]
# As root: a stock CRIU cannot dump other users' tasks where root lacks CAP_SYS_RESOURCE, and both sides shall move the same.
REDIS = ["--entrypoint", "redis-server"]
REDIS_ARGUMENTS = ["--protected-mode", "no", "--save", ""]
LINK = "1gbit"


class Load:
    """The client on the client host, and its operations per second on the screen."""

    def __init__(self, bed, *options):
        self.process = bed.client.popen(
            ["/usr/bin/python3", PROJECT / "bench" / "counter.py", pairs.LAN_ADDRESS, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "started":
            raise RuntimeError("the client does not reach Redis")
        self.lines = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def finish(self):
        """Stop it; what it saw."""
        self.process.stdin.close()
        self.reader.join(timeout=130)
        self.process.wait()
        return json.loads(self.lines[-1])


def start_redis(pair, megabytes):
    """The container, and incompressible data in it."""
    pair.run("a", "cache", "redis", *REDIS_ARGUMENTS, options=REDIS)
    pairs.wait_for(lambda: "PONG" in pair.bed.a.run(
        ["docker", "exec", "cache", "redis-cli", "ping"], check=False).stdout, "Redis answers")
    stock.announce(pair.bed.a, "cache", pairs.LAN_ADDRESS)
    fill = "for i=1,tonumber(ARGV[1]) do local t={} for j=1,8192 do " \
           "t[j]=struct.pack('I4I4',math.random(0,65535)*65536+math.random(0,65535)," \
           "math.random(0,65535)*65536+math.random(0,65535)) end " \
           "redis.call('set','key'..i,table.concat(t)) end"
    if megabytes:
        pair.bed.a.docker("exec", "cache", "redis-cli", "eval", fill, "0", str(megabytes * 16))


def with_dmigrate(pair, megabytes, quiet=False):
    """Returns (report, client)."""
    start_redis(pair, megabytes)
    load = Load(pair.bed)
    try:
        result = pair.bed.a.run(["timeout", 300, *[each for each in pair.command("a", "cache") if each != "--json"]],
                                check=False, **({} if quiet else {"stdout": None, "stderr": None}))
        reports = pair.dmigrate("a", "report", "--json").stdout
    finally:
        seen = load.finish()
    if result.returncode:
        raise RuntimeError(f"dmigrate ended with {result.returncode}")
    return json.loads(reports), seen


def with_docker(pair, megabytes):
    """The baseline: returns the client's view."""
    for host in pair.bed.docker_hosts:
        stock.prepare(host, pairs.BUILD / "criu-stock" / "criu")
        host.run(["docker", "rm", "-f", "-v", "cache"], check=False)
    start_redis(pair, megabytes)
    load = Load(pair.bed, "--reconnect")
    create = ["--name", "cache", "--network", "lan", "--ip", pairs.LAN_ADDRESS, *REDIS, "redis", *REDIS_ARGUMENTS]
    try:
        stock.move(pair.bed.a, pair.bed.b, pairs.ADDRESS["b"], "cache", create)
        operations = len(load.lines)
        pairs.wait_for(lambda: len(load.lines) > operations + 3, "the client goes on", seconds=120)
    finally:
        seen = load.finish()
    return seen


def build_stock():
    """A CRIU without our patches, for the baseline."""
    subprocess.run([PROJECT / "criu-patches" / "build.sh", "--stock", pairs.BUILD / "criu-stock"], check=True)
