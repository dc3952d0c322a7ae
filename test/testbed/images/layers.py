# SPDX-License-Identifier: GPL-2.0-or-later
"""Layers of the images, built once each into the cache as tar archives.

The base is a minimal Debian. An image's own layer is what installing its packages in an overlay on
top of the base writes to the upper directory.
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile
import tempfile

from .. import apt, paths
from . import recipes

SUITE = "bookworm"
CACHE = paths.CACHE / "images"
EXCLUDES = tuple(f"/usr/share/{name}/*" for name in ("man", "doc", "locale", "info", "lintian"))
# of no use in an image, or different at every build
CLEAN = ("/var/lib/apt/lists/*", "/var/cache/apt/*", "/var/cache/debconf/*-old", "/var/log/*",
         "/var/cache/ldconfig/*", "/var/lib/dpkg/*-old")

MMDEBSTRAP = ["mmdebstrap", "--quiet", "--variant=apt", "--mode=root", "--format=tar",
              "--aptopt=APT::Install-Recommends \"false\"",
              "--aptopt=Acquire::Languages \"none\"",
              # else the essential set pulls in all of perl through usrmerge
              "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--include=usr-is-merged",
              *(f"--dpkgopt=path-exclude={each}" for each in EXCLUDES)]

# runs in a mount and pid namespace of its own: mounts and stray processes end with it
INSTALL = """
set -eu
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/root"
mount -t proc proc "$work/root/proc"
mount --bind /dev "$work/root/dev"
for file in /etc/resolv.conf /etc/hosts; do
    touch "$work/root$file"
    mount --bind "$file" "$work/root$file"
done
printf '#!/bin/sh\\nexit 101\\n' > "$work/root/usr/sbin/policy-rc.d"
chmod 755 "$work/root/usr/sbin/policy-rc.d"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin
chroot "$work/root" apt-get -qq update
chroot "$work/root" apt-get -qq -o Dpkg::Options::=--force-confold \
    install --no-install-recommends $packages
chroot "$work/root" sh -euc "$script"
rm "$work/root/usr/sbin/policy-rc.d"
"""


def base():
    """The common layer: (tar, unpacked directory)."""
    folder = CACHE / f"base-{_digest([SUITE, MMDEBSTRAP])}"
    with paths.locked(CACHE / "base.lock"):
        if not (folder / "layer.tar").exists():
            _build_base(folder)
    return folder / "layer.tar", folder / "root"


def _build_base(folder):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "root").mkdir(parents=True)
    unfinished = folder / "layer.tar.new"
    _run(["unshare", "--mount", *MMDEBSTRAP, SUITE, str(unfinished), *apt.source_lines(SUITE)])
    _run(["tar", "--extract", "--numeric-owner", "--exclude=./dev/*", "--file", str(unfinished),
          "--directory", str(folder / "root")])
    unfinished.rename(folder / "layer.tar")


def own(name):
    """An image's own layer, as a tar."""
    recipe = recipes.RECIPES[name]
    target = CACHE / f"{name}-{_digest([SUITE, MMDEBSTRAP, INSTALL, repr(recipe)])}.tar"
    if target.exists():
        return target
    lower = base()[1] if recipe.on_base else None
    with paths.locked(CACHE / f"{name}.lock"), _scratch() as work:
        if not target.exists():
            if recipe.on_base:
                _install(recipe, lower, work)
            else:
                _unpack_busybox(work / "upper")
            unfinished = target.with_suffix(".new")
            _write_tar(work / "upper", unfinished)
            unfinished.rename(target)
    return target


@contextlib.contextmanager
def _scratch():
    # in the cache: the upper directory of an overlay cannot be on a tmpfs that lacks xattrs
    with tempfile.TemporaryDirectory(prefix="layer-", dir=CACHE) as work:
        work = pathlib.Path(work)
        for name in ("upper", "work", "root"):
            (work / name).mkdir()
        yield work


def _install(recipe, lower, work):
    for name, (mode, text) in recipe.files.items():
        target = work / "upper" / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)
    env = dict(os.environ, base=str(lower), work=str(work), packages=" ".join(recipe.packages),
               script=recipe.script or ":")
    _run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
          "sh", "-c", INSTALL], env=env)


def _unpack_busybox(root):
    apt.unpack(SUITE, recipes.RECIPES["busybox"].packages, root / "package")
    for name in ("bin", "sbin", "usr/bin", "usr/sbin", "etc", "root"):
        (root / name).mkdir(parents=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    shutil.copy2(root / "package/bin/busybox", root / "bin/busybox")
    shutil.rmtree(root / "package")
    applets = subprocess.run([root / "bin/busybox", "--list-full"], capture_output=True, text=True,
                             check=True).stdout.split()
    for applet in applets:
        if not (root / applet).exists():
            (root / applet).symlink_to("/bin/busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n"
                                     "nobody:x:65534:65534:nobody:/:/bin/sh\n", encoding="utf-8")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n", encoding="utf-8")


def _write_tar(upper, target):
    """An overlay's upper directory as an image layer: deletions become .wh. files."""
    skipped = {path for pattern in CLEAN for path in upper.glob(pattern.lstrip("/"))}
    skipped |= {upper / "etc/resolv.conf", upper / "etc/hosts"}
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(upper.rglob("*")):
            if skipped.isdisjoint({path, *path.parents}):
                _add(tar, path, path.relative_to(upper))


def _add(tar, path, name):
    info = path.lstat()
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
        tar.addfile(tarfile.TarInfo(str(name.parent / f".wh.{name.name}")))
        return
    tar.add(path, str(name), recursive=False)
    if stat.S_ISDIR(info.st_mode) and _is_opaque(path):
        tar.addfile(tarfile.TarInfo(str(name / ".wh..wh..opq")), io.BytesIO())


def _is_opaque(path):
    try:
        return os.getxattr(path, "trusted.overlay.opaque") == b"y"
    except OSError:
        return False


def _digest(parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def _run(argv, **options):
    result = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            check=False, **options)
    if result.returncode:
        raise paths.TestbedError(f"{argv[0]}: exit {result.returncode}:\n{result.stderr[-2000:]}")
