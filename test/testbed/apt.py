# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpack Debian packages without installing them: apt with private lists, cache and status."""

import os
import pathlib
import re
import subprocess
import tempfile

from . import paths

# its default is Debian's own mirror, for a machine whose apt knows none (Ubuntu)
MMDEBSTRAP = pathlib.Path("/usr/bin/mmdebstrap")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def mirror():
    """URI of a Debian mirror: the machine's own if it has one."""
    if "DMIGRATE_DEBIAN_MIRROR" in os.environ:
        return os.environ["DMIGRATE_DEBIAN_MIRROR"].rstrip("/")
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        capture_output=True, text=True, check=False)
    for uri in targets.stdout.split():
        if uri.rstrip("/").endswith("/debian"):
            return uri.rstrip("/")
    default = re.search(r"\$mirror\s*=\s*'(http[^']+)'", MMDEBSTRAP.read_text(encoding="utf-8"))
    if not default:
        raise paths.TestbedError("no Debian mirror is known here: set DMIGRATE_DEBIAN_MIRROR")
    return default[1].rstrip("/")


def source_lines(suite):
    """The lines of a sources.list for one suite, security updates included where it has them."""
    lines = [f"deb [signed-by={KEYRING}] {mirror()} {suite} main"]
    if suite != "sid":
        lines.append(f"deb [signed-by={KEYRING}] {mirror()}-security {suite}-security main")
    return lines


def unpack(suite, packages, target):
    """Download packages of a suite and unpack them below target; returns {package: version}."""
    with tempfile.TemporaryDirectory(prefix="apt-", dir=_ensure(paths.CACHE)) as scratch:
        scratch = pathlib.Path(scratch)
        options = _private_apt(scratch, suite)
        _apt(options, ["update", "-qq"], scratch)
        _apt(options, ["download", "-qq", *packages], _ensure(scratch / "debs"))
        versions = {}
        for deb in sorted((scratch / "debs").glob("*.deb")):
            subprocess.run(["dpkg", "-x", deb, target], check=True)
            name, version = _identity(deb)
            versions[name] = version
        return versions


def _private_apt(scratch, suite):
    for folder in ("state/lists/partial", "cache/archives/partial"):
        _ensure(scratch / folder)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text("\n".join(source_lines(suite)) + "\n", encoding="utf-8")
    settings = {
        "Dir::State": scratch / "state",
        "Dir::Cache": scratch / "cache",
        "Dir::State::status": scratch / "status",
        "Dir::Etc::sourcelist": scratch / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Acquire::Languages": "none",
        # root downloads: the unprivileged user cannot write to the scratch directory
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _apt(options, arguments, folder):
    result = subprocess.run(["apt-get", *options, *arguments], cwd=folder,
                            capture_output=True, text=True, check=False)
    if result.returncode:
        raise paths.TestbedError(f"apt-get {' '.join(arguments)}: {result.stderr.strip()}")


def _identity(deb):
    shown = subprocess.run(["dpkg-deb", "--showformat", "${Package} ${Version}", "--show", deb],
                           capture_output=True, text=True, check=True)
    return shown.stdout.split()


def _ensure(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder
