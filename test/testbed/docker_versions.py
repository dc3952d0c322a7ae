# SPDX-License-Identifier: GPL-2.0-or-later
"""The Docker versions a host can run: unpacked from Debian's packages, never installed."""

import dataclasses
import json
import os
import shutil
import subprocess

from . import apt, paths

# Debian 12's runc serves every Docker version but the one that is there to test a newer runc
RUNC_1_1 = ("bookworm", ("runc",))


@dataclasses.dataclass(frozen=True)
class Docker:
    """One choice of --docker."""

    tree: str  # directory in the cache; choices that differ by configuration alone share it
    expect: str  # what the version of docker.io must start with: sid moves on
    parts: tuple  # (suite, packages), a later one overwrites an earlier one
    private_libc: bool = False  # runc needs a newer C library than Debian 12's
    config: dict = dataclasses.field(default_factory=dict)  # into daemon.json


CHOICES = {
    "20.10": Docker("20.10", "20.10.", (
        ("bookworm", ("docker.io", "containerd", "runc", "tini")),)),
    "26": Docker("26", "26.", (
        ("trixie", ("docker.io", "docker-cli", "containerd", "tini")), RUNC_1_1)),
    "28": Docker("28", "28.", (
        ("sid", ("docker.io", "docker-cli", "containerd", "tini-static")), RUNC_1_1)),
    "28-runc13": Docker("28-runc13", "28.", (
        ("sid", ("docker.io", "docker-cli", "containerd", "tini-static",
                 "runc", "libc6", "libseccomp2")),), private_libc=True),
}
CHOICES["28-containerd"] = dataclasses.replace(
    CHOICES["28"], config={"features": {"containerd-snapshotter": True}})


def choice(name):
    """The Docker called so on the command line."""
    if name not in CHOICES:
        raise paths.TestbedError(f"no Docker {name}; there are {', '.join(sorted(CHOICES))}")
    return CHOICES[name]


def prepare(name):
    """Directory with the version's usr/bin and usr/sbin, downloaded if it is not cached."""
    docker = choice(name)
    tree = paths.CACHE / "docker" / docker.tree
    with paths.locked(paths.CACHE / f"docker-{docker.tree}.lock"):
        if not (tree / "versions.json").exists():
            shutil.rmtree(tree, ignore_errors=True)
            _fill(docker, tree)
    return tree


def _fill(docker, tree):
    unfinished = tree.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    versions = {}
    for suite, packages in docker.parts:
        versions.update(apt.unpack(suite, packages, unfinished))
    if not versions["docker.io"].startswith(docker.expect):
        raise paths.TestbedError(f"Docker {docker.tree}: Debian now has {versions['docker.io']}")
    if docker.private_libc:
        _use_private_libc(unfinished, tree)
    (unfinished / "versions.json").write_text(json.dumps(versions, indent=2), encoding="utf-8")
    os.rename(unfinished, tree)


def _use_private_libc(root, final):
    """Make runc load the C library unpacked beside it. A wrapper around ld.so would not do:
    runc executes /proc/self/exe again."""
    patchelf_root = root / "patchelf"
    apt.unpack("bookworm", ("patchelf",), patchelf_root)
    library = "usr/lib/x86_64-linux-gnu"
    runc = next(path for path in (root / "usr/sbin/runc", root / "usr/bin/runc")
                if path.exists() and not path.is_symlink())
    subprocess.run([patchelf_root / "usr/bin/patchelf",
                    "--set-interpreter", final / library / "ld-linux-x86-64.so.2",
                    "--set-rpath", final / library, runc], check=True)
    shutil.rmtree(patchelf_root)


def recorded():
    """{tree: {package: version}} of everything in the cache."""
    found = sorted((paths.CACHE / "docker").glob("*/versions.json"))
    return {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in found}
