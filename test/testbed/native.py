# SPDX-License-Identifier: GPL-2.0-or-later
"""The testbed's small C programs, built on first use into the cache."""

import functools
import hashlib
import os
import subprocess

from . import paths


@functools.lru_cache(maxsize=None)
def program(name):
    """Path of the program built from native/NAME.c; its name carries the source's hash."""
    source = paths.SOURCE / "native" / f"{name}.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = paths.CACHE / "native" / f"{name}-{digest}"
    if target.exists():
        return str(target)
    with paths.locked(paths.CACHE / "native.lock"):
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            _compile(source, target)
    return str(target)


def _compile(source, target):
    # static: the program must start in any mount namespace
    unfinished = f"{target}.new"
    command = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-static", "-pthread",
               "-o", unfinished, str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise paths.TestbedError(f"cannot build {source.name}:\n{result.stderr}")
    os.rename(unfinished, target)
