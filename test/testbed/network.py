# SPDX-License-Identifier: GPL-2.0-or-later
"""The wires: every network is a bridge in the switch's namespace, every host has a port on it.

    host a                 switch                     host b
    mgmt 10.77.0.1 ------- a-mgmt  [mgmt]  b-mgmt --- mgmt 10.77.0.2
    br-lan + lan-up ------ a-lan   [lan]   b-lan ---- br-lan + lan-up
                           client-mgmt, client-lan -- client: mgmt 10.77.0.3, lan 10.88.0.200

A delayed port is taken out of its bridge; a TAP relay joins the two:
    a-mgmt -[a-mgmt-d]- a-mgmt-0 ~relay~ a-mgmt-1 -[mgmt]
"""

import ipaddress
import re
import subprocess

from . import daemons, hosts, native, paths

MGMT = "mgmt"
MGMT_ADDRESS = {"a": "10.77.0.1", "b": "10.77.0.2", "client": "10.77.0.3"}
LAN_SUBNET = "10.88.0.0/24"
# host part of the addresses in a container network
GATEWAY = {"a": 1, "b": 2}
CLIENT = 200
# what Docker hands out by itself, so that two hosts never choose the same address
RANGE = {"a": 64, "b": 128}
RANGE_PREFIX = 26

# tbf: bytes that may go at once (a millisecond's worth) and that may wait (ten milliseconds' worth,
# the queue of a usual network card); the least of each keeps slow links usable
BURST_SECONDS, BURST_LEAST = 0.001, 6 * 1514
QUEUE_SECONDS, QUEUE_LEAST = 0.010, 100 * 1514
UNITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def ip(host, *lines, program="ip"):
    """Run lines of ip (or tc) in the network namespace of a host, all or an error."""
    command = ["nsenter", f"--net=/proc/{host.pid}/ns/net", program, "-batch", "-"]
    result = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True,
                            check=False)
    if result.returncode:
        raise paths.TestbedError(f"{host.name}: {program}: {result.stderr.strip()}")


def setup(bed):
    """The switch and the management network."""
    ip(bed.switch, "link set lo up")
    _make_bridge(bed, MGMT)
    for host in bed.ends:
        ip(host, "link set lo up")
        _plug(bed, host, MGMT, MGMT)
        ip(host, f"addr add {MGMT_ADDRESS[host.name]}/24 dev {MGMT}", f"link set {MGMT} up")


def _make_bridge(bed, net):
    # no snooping: a switch that forgets multicast groups loses neighbour discovery
    ip(bed.switch, f"link add {net} type bridge mcast_snooping 0 forward_delay 0",
       f"link set {net} up")


def _plug(bed, host, net, interface):
    """Lay a cable from the switch to the host, where it appears as interface."""
    ip(bed.switch, f"link add {port(host, net)} type veth peer name {interface} netns {host.pid}",
       f"link set {port(host, net)} up")
    bed.links.setdefault(host.name, {})[net] = {"interface": interface, "cut": False,
                                                "rate": None, "delay": None}
    _attach(bed, host, net)


def port(host, net):
    """The host's port of a network, in the switch."""
    return f"{host.name}-{net}"


def _attach(bed, host, net):
    """Put the port into the network's bridge, or take it out while it is cut."""
    link = bed.links[host.name][net]
    outer = f"{port(host, net)}-1" if link["delay"] else port(host, net)
    ip(bed.switch, f"link set {outer} nomaster" if link["cut"] else
       f"link set {outer} master {net}")


def create_lan(bed, net, subnet):
    """A container network on both hosts whose bridges are one layer 2 with the client."""
    if not re.fullmatch("[a-z][a-z0-9]{0,5}", net) or net == MGMT:
        # the longest interface name made of it is client-NET-d, and 15 is the limit
        raise paths.TestbedError(f"not a name of a network (at most 6 of a-z, 0-9): {net}")
    if net in bed.networks:
        raise paths.TestbedError(f"there is a network {net} already")
    space = ipaddress.ip_network(subnet)
    if space.prefixlen > 24:
        raise paths.TestbedError(f"{subnet} is too small: /24 or larger")
    bed.networks[net] = subnet
    _make_bridge(bed, net)
    for host in bed.docker_hosts:
        _create_docker_network(host, net, space)
        _plug(bed, host, net, f"{net}-up")
        ip(host, f"link set {net}-up master br-{net}", f"link set {net}-up up")
        management = bed.links[host.name][MGMT]
        shape_link(bed, host, net, management["rate"], management["delay"])
    _plug(bed, bed.client, net, net)
    ip(bed.client, f"addr add {space[CLIENT]}/{space.prefixlen} dev {net}", f"link set {net} up")


def _create_docker_network(host, net, space):
    others = [f"peer-{name}={space[number]}" for name, number in GATEWAY.items()
              if name != host.name] + [f"client={space[CLIENT]}"]
    host.docker("network", "create", "--subnet", str(space),
                "--gateway", str(space[GATEWAY[host.name]]),
                "--ip-range", f"{space[RANGE[host.name]]}/{RANGE_PREFIX}",
                *(f"--aux-address={each}" for each in others),
                "--opt", f"com.docker.network.bridge.name=br-{net}", net)


def set_cut(bed, host, net, wanted):
    """A cut link is gone without a word: both ends keep their carrier, nothing arrives."""
    _link(bed, host, net)["cut"] = wanted
    _attach(bed, host, net)


def _link(bed, host, net):
    links = bed.links.get(host.name, {})
    if net not in links:
        raise paths.TestbedError(f"host {host.name} has no link {net}; there are: "
                                 f"{', '.join(links) or 'none'}")
    return links[net]


def shape(bed, host, rate, delay):
    """Shape all links of a host."""
    for net in bed.links.get(host.name, {}):
        shape_link(bed, host, net, rate, delay)


def shape_link(bed, host, net, rate, delay):
    """Limit a link to rate in each direction and delay each direction; None: do not."""
    link = bed.links[host.name][net]
    _limit(host, link["interface"], rate, bool(link["rate"]))
    _limit(bed.switch, port(host, net), rate, bool(link["rate"]))
    if delay != link["delay"]:
        _set_delay(bed, host, net, delay)
    link["rate"] = rate
    _attach(bed, host, net)


def _limit(host, interface, rate, limited):
    if rate:
        bits = parse_rate(rate)
        burst = int(max(bits / 8 * BURST_SECONDS, BURST_LEAST))
        queue = int(max(bits / 8 * QUEUE_SECONDS, QUEUE_LEAST))
        ip(host, f"qdisc replace dev {interface} root tbf rate {int(bits)}bit burst {burst} "
                 f"limit {queue}", program="tc")
    elif limited:
        ip(host, f"qdisc del dev {interface} root", program="tc")


def parse_rate(text):
    """Bits per second of "1gbit", "500mbit", ..."""
    match = re.fullmatch(r"([0-9.]+)([kmg]?bit)", text.lower())
    if not match:
        raise paths.TestbedError(f"not a rate (like 100mbit or 1gbit): {text}")
    return float(match[1]) * UNITS[match[2]]


def parse_delay(text):
    """Microseconds of "10ms", "250us", ..."""
    match = re.fullmatch(r"([0-9.]+)(us|ms|s)", text.lower())
    if not match:
        raise paths.TestbedError(f"not a delay (like 10ms): {text}")
    return int(float(match[1]) * {"us": 1, "ms": 1e3, "s": 1e6}[match[2]])


def _set_delay(bed, host, net, delay):
    link, inner = bed.links[host.name][net], port(host, net)
    if link["delay"]:
        hosts.wait_gone(hosts.kill([link["relay"]]))
        ip(bed.switch, f"link del {inner}-d")
    link["delay"] = delay
    if not delay:
        return
    # the relay makes the TAP devices and takes them along when it ends
    relay = [native.program("relay"), f"{inner}-0", f"{inner}-1", str(parse_delay(delay))]
    link["relay"] = daemons.start(bed.switch, f"relay-{inner}", relay)
    ip(bed.switch, f"link add {inner}-d type bridge mcast_snooping 0 forward_delay 0",
       f"link set {inner}-d up", f"link set {inner} master {inner}-d",
       f"link set {inner}-0 master {inner}-d", f"link set {inner}-0 up", f"link set {inner}-1 up")
