# SPDX-License-Identifier: GPL-2.0-or-later
"""Container images made from Debian packages: there is no registry."""

from .archive import load
from .recipes import RECIPES

__all__ = ["RECIPES", "load"]
