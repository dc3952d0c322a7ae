# SPDX-License-Identifier: GPL-2.0-or-later
"""The testbed command."""

import argparse
import os
import sys

from . import bed, cleanup, docker_versions, images, network, paths


def _add_name(parser):
    parser.add_argument("--name", default="default", help="which testbed (default: %(default)s)")


def cmd_up(args):
    """bring up two Docker hosts, a and b, and a client"""
    options = {key: value for key, value in vars(args).items() if key not in ("run", "verb")}
    bed.Testbed.up(**options)


def add_up(parser):
    choices = sorted(docker_versions.CHOICES)
    parser.add_argument("--docker", default="20.10", choices=choices)
    parser.add_argument("--docker-b", choices=choices, help="another Docker on host b")
    parser.add_argument("--cgroup", choices=("v1", "v2"), help="default: v1 if the machine has it")
    parser.add_argument("--cgroup-b", choices=("v1", "v2"))
    parser.add_argument("--rate", help="each direction of each host's links, like 1gbit")
    parser.add_argument("--delay", help="added to each direction of each host's links, like 10ms")
    parser.add_argument("--experimental", action="store_true", help='"experimental": true')
    parser.add_argument("--uptime", type=int, default=0, metavar="SECONDS",
                        help="host a's clocks since boot are that much ahead")
    parser.add_argument("--uptime-b", type=int, default=0, metavar="SECONDS")


def cmd_down(args):
    """end a testbed and remove everything it made, also after a crash"""
    for name in cleanup.known() if args.all else [args.name]:
        if args.all:
            print(f"taking down {name}")
        cleanup.down(name)


def add_down(parser):
    parser.add_argument("--all", action="store_true", help="every testbed of the machine, whoever uses it")


def cmd_leftovers(_args):
    """list what exists of any testbed; exit code 1 if anything does"""
    found = cleanup.leftovers()
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


def cmd_restart_docker(args):
    """restart a host's dockerd, after a change of its /etc/docker for example"""
    bed.Testbed(args.name).restart_docker(args.host)


def add_host(parser):
    parser.add_argument("host")


def cmd_exec(args):
    """run a command on a host (a, b, client, switch)"""
    host = bed.Testbed(args.name).host(args.host)
    argv = host.command(args.argv)
    os.execve(argv[0], argv, host.environment())


def add_exec(parser):
    add_host(parser)
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND")


def cmd_network(args):
    """create a container network that joins both hosts and the client"""
    bed.Testbed(args.name).network(args.net, args.subnet)


def add_network(parser):
    parser.add_argument("net", nargs="?", default="lan")
    parser.add_argument("--subnet", default=network.LAN_SUBNET)


def cmd_image(args):
    """make images from Debian packages and load them"""
    hosts = bed.DOCKER_HOSTS if args.on == "both" else (args.on,)
    for name in args.image:
        bed.Testbed(args.name).image(name, hosts)


def add_image(parser):
    parser.add_argument("image", nargs="+", choices=sorted(images.RECIPES))
    parser.add_argument("--host", dest="on", choices=(*bed.DOCKER_HOSTS, "both"), default="both")


def _none(text):
    return None if text in ("off", "none", "0") else text


def cmd_shape(args):
    """limit and delay every link of a host, in each direction"""
    bed.Testbed(args.name).shape(args.host, args.rate, args.delay)


def add_shape(parser):
    parser.add_argument("host")
    parser.add_argument("rate", type=_none, help="like 100mbit; off: no limit")
    parser.add_argument("delay", type=_none, nargs="?", help="like 10ms; off: no delay")


def cmd_cut(args):
    """cut a host's management link: packets vanish, no end notices by itself"""
    bed.Testbed(args.name).cut(args.host, args.lan or network.MGMT)


def cmd_heal(args):
    """undo cut"""
    bed.Testbed(args.name).heal(args.host, args.lan or network.MGMT)


def add_link(parser):
    parser.add_argument("host")
    parser.add_argument("--lan", nargs="?", const="lan", metavar="NET",
                        help="the uplink of a container network instead")


def cmd_versions(_args):
    """print the versions of the Docker packages in the cache"""
    for tree, packages in docker_versions.recorded().items():
        print(tree)
        for package, version in packages.items():
            print(f"  {package} {version}")


COMMANDS = {
    "up": (cmd_up, add_up),
    "down": (cmd_down, add_down),
    "exec": (cmd_exec, add_exec),
    "network": (cmd_network, add_network),
    "image": (cmd_image, add_image),
    "shape": (cmd_shape, add_shape),
    "cut": (cmd_cut, add_link),
    "heal": (cmd_heal, add_link),
    "restart-docker": (cmd_restart_docker, add_host),
    "leftovers": (cmd_leftovers, None),
    "versions": (cmd_versions, None),
}


def main():
    """Parse the command line and run the command."""
    parser = argparse.ArgumentParser(prog="testbed", description=(
        "Two Docker hosts and a client on this machine, each in its own namespaces."))
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    for verb, (run, add) in COMMANDS.items():
        sub = verbs.add_parser(verb, help=run.__doc__, description=run.__doc__)
        _add_name(sub)
        if add:
            add(sub)
        sub.set_defaults(run=run)
    args = parser.parse_args()
    try:
        args.run(args)
    except paths.TestbedError as error:
        sys.exit(f"testbed: {error}")
