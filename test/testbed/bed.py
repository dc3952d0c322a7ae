# SPDX-License-Identifier: GPL-2.0-or-later
"""A testbed: hosts a and b with Docker, a client, and the switch that joins them."""

import concurrent.futures
import json
import re
import shutil

from . import cgroups, daemons, docker_versions, hosts, images, network, paths
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

    def _load(self, facts):
        self.facts = facts
        self.hosts = {name: hosts.Host(self.name, name, each)
                      for name, each in facts["hosts"].items()}
        self.links = facts["links"]
        self.networks = facts["networks"]

    @classmethod
    def up(cls, name="default", **options):
        """Bring one up; options are those of Options."""
        if not re.fullmatch("[a-z0-9][a-z0-9-]{0,30}", name):
            raise paths.TestbedError(f"not a name for a testbed (a-z, 0-9, -): {name}")
        with paths.locked(paths.STATE / f"{name}.lock"):
            if (paths.STATE / name).exists():
                raise paths.TestbedError(f"testbed {name} is up already, or its remains are: "
                                         f"testbed down --name {name}")
            try:
                return _bring_up(cls, name, **options)
            except BaseException:
                remove(name)
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

    def network(self, name="lan", subnet=LAN_SUBNET):
        """Create a Docker network that is one layer 2 on both hosts and the client."""
        network.create_lan(self, name, subnet)
        self.save()

    def image(self, name, on=DOCKER_HOSTS):
        """Make an image (busybox, redis, ...) known to the Dockers of some hosts."""
        for host in on:
            images.load(self.host(host), name)

    def shape(self, host, rate, delay=None):
        """Shape every link of a host: rate like "1gbit" or None, delay like "10ms" or None."""
        for net in self.links[host]:
            network.shape_link(self, self.host(host), net, rate, delay)
        self.save()

    def cut(self, host, net=MGMT):
        """Blackhole a link of a host."""
        network.cut(self, self.host(host), net)
        self.save()

    def heal(self, host, net=MGMT):
        """Undo cut."""
        network.heal(self, self.host(host), net)
        self.save()

    def down(self):
        """End every process of the testbed and remove all that it made."""
        down(self.name)


def _bring_up(cls, name, *, docker="20.10", docker_b=None, cgroup=None, cgroup_b=None, rate=None,
              delay=None, experimental=False, uptime=0, uptime_b=0):
    cgroup = cgroup or ("v1" if cgroups.has_v1() else "v2")
    plans = {"a": (docker, cgroup, uptime), "b": (docker_b or docker, cgroup_b or cgroup, uptime_b),
             "client": (None, cgroup, 0), "switch": (None, cgroup, 0)}
    (paths.STATE / name / "shared").mkdir(parents=True)
    bed = cls.__new__(cls)
    bed.name = name
    with concurrent.futures.ThreadPoolExecutor() as pool:
        started = {host: pool.submit(_start_host, name, host, plan, experimental)
                   for host, plan in plans.items()}
        bed._load({"hosts": {host: future.result() for host, future in started.items()},
                   "links": {}, "networks": {}})
        network.setup(bed)
        list(pool.map(daemons.start_docker, bed.docker_hosts))
    if rate or delay:
        for host in DOCKER_HOSTS:
            bed.shape(host, rate, delay)
    bed.save()
    return bed


def _start_host(name, host, plan, experimental):
    docker, cgroup, uptime = plan
    tree = docker_versions.prepare(docker) if docker else None
    files = {"/etc/hostname": f"{host}\n", "/etc/hosts": _hosts_file()}
    if docker:
        config = dict(docker_versions.choice(docker).config)
        if experimental:
            config["experimental"] = True
        files["/etc/docker/daemon.json"] = json.dumps(config, indent=2) + "\n"
        files["/etc/containerd/config.toml"] = daemons.CONTAINERD_CONFIG
    return hosts.start(name, host, docker=tree, cgroup_mode=cgroup, uptime=uptime, files=files)


def _hosts_file():
    lines = ["127.0.0.1 localhost"]
    lines += [f"{address} {host}" for host, address in network.MGMT_ADDRESS.items()]
    return "\n".join(lines) + "\n"


def _state_file(name):
    return paths.STATE / name / "state.json"


def down(name):
    """Take down a testbed, whether it is whole or what a crash left of one."""
    with paths.locked(paths.STATE / f"{name}.lock"):
        remove(name)
    (paths.STATE / f"{name}.lock").unlink(missing_ok=True)


def remove(name):
    """The part of down that runs under the lock."""
    found = cgroups.find(name)
    pids = set().union(*(cgroups.processes(each) for each in found))
    handles = hosts.kill(pids)
    for each in found:
        cgroups.thaw(each)
    if not hosts.wait_gone(handles):
        raise paths.TestbedError(f"testbed {name}: some processes do not die: {sorted(pids)}")
    for each in found:
        cgroups.remove(each)
    shutil.rmtree(paths.STATE / name, ignore_errors=False) if (paths.STATE / name).exists() else None
