# SPDX-License-Identifier: GPL-2.0-or-later
"""Two real Docker hosts and a client on one machine; see README.md."""

from .bed import DOCKER_HOSTS, Testbed
from .cleanup import down, leftovers
from .hosts import Host
from .paths import TestbedError

__all__ = ["DOCKER_HOSTS", "Host", "Testbed", "TestbedError", "down", "leftovers"]
