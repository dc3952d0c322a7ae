#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0-or-later
"""An ssh to this machine: answers -G, runs remote commands here; what it was given goes to $FAKE_DIR/asked."""
import json
import os
import pathlib
import sys

FOLDER = pathlib.Path(os.environ["FAKE_DIR"])

args = sys.argv[1:]
split = args.index("--")
options, (host, *command) = args[:split], args[split + 1 :]
with open(FOLDER / "asked", "a", encoding="utf-8") as asked:
    asked.write(json.dumps(["ssh", args]) + "\n")
user = options[options.index("-l") + 1] if "-l" in options else os.environ.get("FAKE_USER", "root")
if "-G" in options:
    print(f"user {user}\nhostname real-{host}\nport 22")
    sys.exit(0)
if host == "unreachable":
    sys.exit(255)
print("Welcome to this machine!", flush=True)
if command[:2] == ["sudo", "-n"]:
    if os.environ.get("FAKE_SUDO") == "no":
        sys.exit(1)
    command = command[2:]
os.environ["PATH"] = os.environ["FAKE_PATH"]
# As sshd does it: a login shell gets the words joined.
os.execv("/bin/sh", ["sh", "-c", " ".join(command)])
