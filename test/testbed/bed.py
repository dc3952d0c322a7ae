# SPDX-License-Identifier: GPL-2.0-or-later
"""A testbed: hosts a and b with Docker, a client, and the switch that joins them."""

import concurrent.futures
import contextlib
import json
import re

from . import cgroups, cleanup, daemons, docker_versions, hosts, images, network, paths, ssh
from .network import LAN_SUBNET, MGMT

DOCKER_HOSTS = ("a", "b")
ALL_HOSTS = ("switch", "client", *DOCKER_HOSTS)


class Testbed:
    """A running testbed. up() makes one, Testbed(name) finds one that is up.

    Works as a context manager that takes it down."""

    __test__ = False  # pytest: this is no test class

    def __init__(self, name="default"):
        self.name = name
        try:
            text = _state_file(name).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise paths.TestbedError(f"no testbed {name} is up") from error
        self._load(json.loads(text))
        dead = [host.name for host in self.hosts.values() if not host.alive()]
        if dead:
            raise paths.TestbedError(f"testbed {name}: {', '.join(dead)} died; "
                                     f"clean up with: testbed down --name {name}")

    def _load(self, facts):
        self.facts = facts
        self.hosts = {name: hosts.Host(self.name, name, each)
                      for name, each in facts["hosts"].items()}
        self.links = facts["links"]
        self.networks = facts["networks"]

    @classmethod
    def up(cls, name="default", **options):
        """Bring one up; the options are those of the command `up`, with underscores."""
        if not re.fullmatch("[a-z0-9][a-z0-9-]{0,30}", name):
            raise paths.TestbedError(f"not a name for a testbed (a-z, 0-9, -): {name}")
        with paths.locked(cleanup.lock_file(name)):
            if (paths.STATE / name).exists():
                raise paths.TestbedError(f"testbed {name} is up already, or its remains are: "
                                         f"testbed down --name {name}")
            try:
                return _bring_up(cls, name, **options)
            except BaseException:
                cleanup.remove(name)
                cleanup.lock_file(name).unlink()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    a = property(lambda self: self.hosts["a"])
    b = property(lambda self: self.hosts["b"])
    client = property(lambda self: self.hosts["client"])
    switch = property(lambda self: self.hosts["switch"])

    @property
    def docker_hosts(self):
        """Hosts that run Docker."""
        return [self.hosts[name] for name in DOCKER_HOSTS]

    @property
    def ends(self):
        """Hosts with an address: all but the switch."""
        return [*self.docker_hosts, self.client]

    @property
    def shared(self):
        """A directory that every host and the machine see under the same path."""
        return paths.STATE / self.name / "shared"

    def host(self, name):
        """The host of that name, or an error that lists the names."""
        if name not in self.hosts:
            raise paths.TestbedError(f"no host {name}; there are {', '.join(self.hosts)}")
        return self.hosts[name]

    def save(self):
        """Keep what a later command needs to know."""
        target = _state_file(self.name)
        unfinished = target.with_suffix(".new")
        unfinished.write_text(json.dumps(self.facts, indent=1), encoding="utf-8")
        unfinished.rename(target)

    @contextlib.contextmanager
    def _changing(self):
        """Work on what other commands left in the state file, and leave it to the next."""
        with paths.locked(cleanup.lock_file(self.name)):
            self._load(json.loads(_state_file(self.name).read_text(encoding="utf-8")))
            yield
            self.save()

    def network(self, name="lan", subnet=LAN_SUBNET):
        """Create a Docker network that is one layer 2 on both hosts and the client."""
        with self._changing():
            network.create_lan(self, name, subnet)

    def image(self, name, on=DOCKER_HOSTS):
        """Make an image (busybox, redis, ...) known to the Dockers of some hosts."""
        for host in on:
            images.load(self.host(host), name)

    def restart_docker(self, host):
        """Stop a host's dockerd as its service would, and start it with its present files."""
        with self._changing():
            daemons.restart_dockerd(self.host(host))

    def shape(self, host, rate, delay=None):
        """Shape every link of a host: rate like "1gbit" or None, delay like "10ms" or None."""
        with self._changing():
            network.shape(self, self.host(host), rate, delay)

    def cut(self, host, net=MGMT):
        """Blackhole a link of a host."""
        with self._changing():
            network.set_cut(self, self.host(host), net, True)

    def heal(self, host, net=MGMT):
        """Undo cut."""
        with self._changing():
            network.set_cut(self, self.host(host), net, False)

    def down(self):
        """End every process of the testbed and remove all that it made."""
        cleanup.down(self.name)


def _bring_up(cls, name, *, docker="20.10", docker_b=None, cgroup=None, cgroup_b=None, rate=None,
              delay=None, experimental=False, uptime=0, uptime_b=0):
    cgroup = cgroup or ("v1" if cgroups.has_v1() else "v2")
    plans = {"a": (docker, cgroup, uptime), "b": (docker_b or docker, cgroup_b or cgroup, uptime_b),
             "client": (None, cgroup, 0), "switch": (None, cgroup, 0)}
    (paths.STATE / name / "shared").mkdir(parents=True)
    ssh.prepare()
    ssh.make_keys(paths.STATE / name / "ssh")
    bed = cls.__new__(cls)
    bed.name = name
    with concurrent.futures.ThreadPoolExecutor() as pool:
        started = {host: pool.submit(_start_host, name, host, plan, experimental)
                   for host, plan in plans.items()}
        bed._load({"hosts": {host: future.result() for host, future in started.items()},
                   "links": {}, "networks": {}})
        network.setup(bed)
        list(pool.map(_start_daemons, bed.docker_hosts))
    if rate or delay:
        for host in DOCKER_HOSTS:
            network.shape(bed, bed.host(host), rate, delay)
    bed.save()
    return bed


def _start_host(name, host, plan, experimental):
    docker, cgroup, uptime = plan
    keys = paths.STATE / name / "ssh"
    files = {"/etc/hostname": (0o644, f"{host}\n"), "/etc/hosts": (0o644, _hosts_file()),
             **ssh.client_files(keys)}
    tree = None
    if docker:
        tree = docker_versions.prepare(docker)
        files.update(ssh.server_files(keys))
        files.update(daemons.docker_files(docker_versions.choice(docker).config, experimental))
    return hosts.start(name, host, docker=tree, cgroup_mode=cgroup, uptime=uptime, files=files)


def _start_daemons(host):
    ssh.start(host)
    daemons.start_docker(host)


def _hosts_file():
    lines = ["127.0.0.1 localhost"]
    lines += [f"{address} {host}" for host, address in network.MGMT_ADDRESS.items()]
    return "\n".join(lines) + "\n"


def _state_file(name):
    return paths.STATE / name / "state.json"
