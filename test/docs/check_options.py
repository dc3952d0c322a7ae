#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""check_options.py MAN BIN: manual pages and --help name the same options and commands, in both directions."""
import pathlib
import re
import sys

from program import COMMON, commands, options


def described(page):
    """Options that a page has an item for."""
    return set(re.findall(r"^\.It Fl Fl ([a-z-]+)", page.read_text(encoding="utf-8"), re.M))


def compare(name, page, program):
    if not page.exists():
        return [f"{name}: {page.name} is missing"]
    return [f"{name} --{option} is not in {page.name}" for option in sorted(program - described(page))] + [
        f"{page.name} describes --{option}, which {name} does not have" for option in sorted(described(page) - program)]


def main(man, binaries):
    dmigrate = binaries / "dmigrate"
    names = commands(dmigrate)
    listed = re.findall(r"^\.It Ic (\w+)", (man / "dmigrate.1").read_text(encoding="utf-8"), re.M)
    wrong = [f"dmigrate.1 and dmigrate --help list other commands: {listed} {names}"] if listed != names else []
    wrong += compare("dmigrate", man / "dmigrate.1", COMMON)
    for name in names:
        own = options(dmigrate, name)
        if not COMMON <= own:
            wrong.append(f"dmigrate {name} lacks a common option")
        if name == "version":  # a page of its own would only repeat dmigrate(1)
            continue
        wrong += compare(f"dmigrate {name}", man / f"dmigrate-{name}.1", own - COMMON)
    if (binaries / "dmigrated").exists():
        wrong += compare("dmigrated", man / "dmigrated.8", options(binaries / "dmigrated"))
    print("\n".join(wrong) or f"{len(names)} commands agree with their pages")
    return 1 if wrong else 0


sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
