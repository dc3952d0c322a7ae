# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program says about itself."""
import re
import subprocess

# Options that every command of dmigrate has; they are described once, in dmigrate(1).
COMMON = {"json", "quiet", "verbose", "help"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout


def commands(dmigrate):
    """Names of the commands, from --help."""
    table = output(dmigrate, "--help").split("Commands:\n")[1]
    return re.findall(r"^  ([a-z]+) ", table, re.M)


def options(*program):
    """Names of the long options, from --help: what stands at the left of its rows."""
    left = re.findall(r"^\s+(--?\w.*?)(?:  |$)", output(*program, "--help"), re.M)
    return {name for row in left for name in re.findall(r"--([a-z-]+)", row)}
