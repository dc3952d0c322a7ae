#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0-or-later
"""A dmigrated that only talks: plays what $FAKE_DIR/scenario.json says, for tests of the commands.

scenario: {"bootstrap": line to print | null (end without an answer), "bootstrap_exit": code,
           "ready": "R" or an error text, "reports": store the report (default true),
           "events": [event | {"wait": "cancel"} | {"sleep": seconds} | {"die": true}], "report": {...}, "cancel": "ok" or an error text,
           "resolve": the same}
Everything that it was asked is appended to $FAKE_DIR/asked, a JSON value a line.
"""
import json
import os
import pathlib
import signal
import socket
import sys
import threading

FOLDER = pathlib.Path(os.environ["FAKE_DIR"])
# A test that forgot it must not leave it behind.
LIFETIME_S = 30


def note(kind, value):
    with open(FOLDER / "asked", "a", encoding="utf-8") as file:
        file.write(json.dumps([kind, value]) + "\n")


def bootstrap(scenario, args):
    note("bootstrap", {"args": args, "key": sys.stdin.readline()})
    answer = scenario.get("bootstrap")
    if answer is not None:
        print(answer, flush=True)
    sys.exit(scenario.get("bootstrap_exit", 0))


class Migration:
    def __init__(self, scenario, migration):
        self.scenario = scenario
        self.id = migration
        self.cancelled = threading.Event()
        self.ended = threading.Event()
        self.last = {"event": "status", "id": migration, "phase": "connect", "state": "running"}
        folder = pathlib.Path(os.environ["DMIGRATE_RUN_DIR"]) / migration
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "control.sock"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(str(self.path))
        self.socket.listen(5)

    def play(self, send):
        for event in self.scenario.get("events", []):
            if event.get("die"):
                os.kill(os.getpid(), signal.SIGKILL)
            if event.get("wait") == "cancel":
                self.cancelled.wait()
                continue
            if "sleep" in event:
                self.ended.wait(event["sleep"])
                continue
            self.last = {"event": "status", "id": self.id, "state": "running", **event}
            send(self.last)
        report = {"id": self.id, **self.scenario["report"]}
        if self.scenario.get("reports", True):
            folder = pathlib.Path(os.environ["DMIGRATE_STATE_DIR"]) / self.id
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
        self.path.unlink()
        send({"event": "end", "report": report})
        self.ended.set()

    def answer(self, connection, verdict):
        event = {"event": "ok"} if verdict == "ok" else {"event": "error", "message": verdict}
        connection.send(json.dumps(event).encode())

    def serve(self, connection):
        request = json.loads(connection.recv(65536))
        note("request", request)
        if request["op"] == "watch":
            self.play(lambda event: connection.send(json.dumps(event).encode()))
        elif request["op"] == "status":
            connection.send(json.dumps(self.last).encode())
        else:
            verdict = self.scenario.get(request["op"], "ok")
            self.answer(connection, verdict)
            if request["op"] == "cancel" and verdict == "ok":
                self.cancelled.set()
        connection.close()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()


def source(scenario, args):
    request_fd = int(args[args.index("--request-fd") + 1])
    ready_fd = int(args[args.index("--ready-fd") + 1])
    with os.fdopen(request_fd) as file:
        options = json.load(file)
    note("source", options)
    note("session", {"sid": os.getsid(0), "parent": os.getppid(), "fds": sorted(map(int, os.listdir("/proc/self/fd")))})
    ready = scenario.get("ready", "R")
    migration = Migration(scenario, options["id"]) if ready == "R" else None
    os.write(ready_fd, ready.encode())
    os.close(ready_fd)
    if migration:
        threading.Thread(target=migration.accept, daemon=True).start()
        migration.ended.wait(LIFETIME_S)


def main():
    scenario = json.loads((FOLDER / "scenario.json").read_text(encoding="utf-8"))
    if "--bootstrap" in sys.argv:
        bootstrap(scenario, sys.argv[1:])
    elif "--source" in sys.argv:
        source(scenario, sys.argv[1:])
    elif "--serve" in sys.argv:  # a migration that runs already: --serve ID
        migration = Migration(scenario, sys.argv[sys.argv.index("--serve") + 1])
        print("ready", flush=True)
        threading.Thread(target=migration.accept, daemon=True).start()
        migration.ended.wait(LIFETIME_S)


main()
