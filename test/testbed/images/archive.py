# SPDX-License-Identifier: GPL-2.0-or-later
"""Hand an image to Docker: the archive that `docker load` reads, written straight into it."""

import hashlib
import io
import json
import subprocess
import tarfile

from .. import paths
from . import layers, recipes

# the same image on every host and at every build: Docker hashes it into the image's ID
CREATED = "2024-01-01T00:00:00Z"


def load(host, name):
    """Make the image NAME:latest known to the Docker of a host."""
    if name not in recipes.RECIPES:
        raise paths.TestbedError(f"no image {name}; there are {', '.join(recipes.RECIPES)}")
    recipe = recipes.RECIPES[name]
    tars = ([layers.base()[0]] if recipe.on_base else []) + [layers.own(name)]
    with host.popen(["docker", "load", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT) as loading:
        try:
            _write(loading.stdin, name, recipe.config, tars)
        except BrokenPipeError:
            pass  # docker says why
        loading.stdin.close()
        said = loading.stdout.read().decode()
    if loading.returncode:
        raise paths.TestbedError(f"docker load {name} on host {host.name}: {said.strip()}")


def _write(stream, name, config, tars):
    digests = [_sha256(tar) for tar in tars]
    image = json.dumps({
        "architecture": "amd64", "os": "linux", "created": CREATED, "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each}" for each in digests]},
        "history": [{"created": CREATED, "created_by": "test/testbed"} for _ in tars],
    }, sort_keys=True).encode()
    config_name = f"{hashlib.sha256(image).hexdigest()}.json"
    manifest = json.dumps([{
        "Config": config_name, "RepoTags": [f"{name}:latest"],
        "Layers": [f"{each}/layer.tar" for each in digests],
    }]).encode()
    with tarfile.open(fileobj=stream, mode="w|") as archive:
        _add(archive, config_name, io.BytesIO(image), len(image))
        for digest, tar in zip(digests, tars):
            with open(tar, "rb") as layer:
                _add(archive, f"{digest}/layer.tar", layer, tar.stat().st_size)
        _add(archive, "manifest.json", io.BytesIO(manifest), len(manifest))


def _add(archive, name, content, size):
    info = tarfile.TarInfo(name)
    info.size = size
    archive.addfile(info, content)


def _sha256(path):
    """Digest of a layer, kept beside it: hashing the base takes longer than loading it."""
    kept = path.with_suffix(".sha256")
    if not kept.exists():
        with open(path, "rb") as layer:
            digest = hashlib.sha256()
            while block := layer.read(1 << 20):
                digest.update(block)
        kept.write_text(digest.hexdigest(), encoding="utf-8")
    return kept.read_text(encoding="utf-8")
