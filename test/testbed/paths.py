# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the testbed keeps what it makes, and the errors it reports."""

import contextlib
import fcntl
import os
import pathlib

# downloads and builds that every testbed of the machine shares
CACHE = pathlib.Path(os.environ.get("DMIGRATE_CACHE_DIR", "/var/cache/dmigrate-testbed"))
# one directory per testbed; must be a real file system: Docker's overlay2 cannot sit on overlayfs
STATE = pathlib.Path(os.environ.get("DMIGRATE_TESTBED_DIR", "/var/tmp/dmigrate-testbed"))
SOURCE = pathlib.Path(__file__).resolve().parent
PROJECT = SOURCE.parent.parent


class TestbedError(Exception):
    """Something the person at the keyboard has to know; the text says what."""

    __test__ = False  # pytest: this is no test class


@contextlib.contextmanager
def locked(path):
    """Hold an exclusive lock on a file: two testbeds may fill the cache at once. The holder may
    remove the file."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with open(path, "w", encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not _is_file(handle, path):
                continue  # removed while we waited: the next one locks another file
            yield
            return


def _is_file(handle, path):
    try:
        return os.path.samestat(os.fstat(handle.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
