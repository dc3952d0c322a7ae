#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""check_completion.py bash|zsh|fish DMIGRATE: what the shell offers is what --help has, in both directions.

bash and fish are asked through their own completion; zsh, which completes only at a terminal, gets one.
"""
import os
import pathlib
import pty
import re
import select
import sys
import tempfile
import time

from program import commands, options, output

WORDS_OF_CHOICE = ("migrate", "--source", {"remove", "keep"})
ZSH_TIMEOUT_S = 20


def bash(script, words):
    quoted = " ".join(f"'{word}'" for word in words)
    text = output("bash", "-c", f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _dmigrate; "
                                'printf "%s\\n" "${COMPREPLY[@]}"')
    return set(text.split())


def fish(script, words):
    line = " ".join(words)
    text = output("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
    return {row.split("\t")[0] for row in text.splitlines()}


class Zsh:
    """One interactive zsh whose Tab key lists the matches of the line between two marks."""

    SETUP = ("PS1='' PS2=''; setopt no_beep no_prompt_sp; fpath=({0} $fpath); autoload -Uz compinit; compinit -u -d {0}/dump; "
             "unset zle_bracketed_paste; zstyle ':completion:*' verbose no; zstyle ':completion:*' list-packed no; "
             "list() {{ compstate[insert]=; compstate[list]=; _main_complete; print -r -- 'BEG''IN' >$TTY; "
             "print -rl -- $offered >$TTY; print -r -- 'EN''D' >$TTY; offered=(); compstate[insert]=; compstate[list]= }}; "
             "compadd() {{ local -a hit; builtin compadd -O hit \"$@\"; offered+=($hit); builtin compadd \"$@\" }}; "
             "zle -C list complete-word list; bindkey '^I' list; echo REA''DY\n")

    def __init__(self, folder):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.environ.update(TERM="dumb", COLUMNS="500")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        os.write(self.terminal, self.SETUP.format(folder).encode())
        self.until("READY")

    def until(self, mark):
        seen, deadline = "", time.monotonic() + ZSH_TIMEOUT_S
        while mark not in seen:
            if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                sys.exit(f"zsh does not answer: {seen!r}")
            seen += os.read(self.terminal, 65536).decode()
        return seen

    def __call__(self, _script, words):
        os.write(self.terminal, (" ".join(words) + "\t").encode())
        text = self.until("END")
        os.write(self.terminal, b"\x15")  # Ctrl-U: an empty line again
        return {word.rstrip("=") for word in re.search(r"BEGIN\s(.*)END", text, re.S).group(1).split()}


def check(shell, dmigrate):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / ("_dmigrate" if shell == "zsh" else "script")
        script.write_text(output(dmigrate, "completion", shell), encoding="utf-8")
        complete = Zsh(folder) if shell == "zsh" else {"bash": bash, "fish": fish}[shell]
        names = commands(dmigrate)
        wrong = []
        if (offered := complete(script, ["dmigrate", ""])) != set(names):
            wrong.append(f"commands: {offered} instead of {names}")
        for name in names:
            offered = {word[2:] for word in complete(script, ["dmigrate", name, "--"]) if word.startswith("--")}
            if offered != options(dmigrate, name):
                wrong.append(f"{name}: offers {sorted(offered)}, has {sorted(options(dmigrate, name))}")
        command, option, values = WORDS_OF_CHOICE
        if (offered := complete(script, ["dmigrate", command, option, ""])) != values:
            wrong.append(f"{command} {option}: {offered} instead of {values}")
    print("\n".join(wrong) or f"{shell} offers what {len(names)} commands have")
    return 1 if wrong else 0


sys.exit(check(sys.argv[1], sys.argv[2]))
