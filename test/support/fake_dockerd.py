#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0-or-later
"""A dockerd that knows runtimes: fake_dockerd.py --socket PATH --config-file FILE [--containers JSON] [--deaf] [...].

Reads "runtimes" of its file at the start and at SIGHUP, as the real one does. --deaf: catches SIGHUP and reads nothing.
--containers: {name: runtime}. What else is on the command line is ignored. Prints "ready".
"""
import argparse
import http.server
import json
import signal
import socketserver


class State:
    def __init__(self, options):
        self.file, self.deaf = options.config_file, options.deaf
        self.containers = {f"{n:064x}": item for n, item in enumerate(json.loads(options.containers).items(), 1)}
        self.runtimes = {}
        self.load()

    def load(self):
        try:
            with open(self.file, encoding="utf-8") as file:
                configured = json.load(file).get("runtimes")
        except FileNotFoundError:
            configured = None
        # As the real one: a file that does not name them leaves them alone.
        if configured is not None or not self.runtimes:
            self.runtimes = {"runc": {"path": "runc"}, **(configured or {})}

    def hangup(self, *_):
        if not self.deaf:
            self.load()

    def answer(self, path):
        if path.endswith("/_ping"):
            return "OK"
        if path.endswith("/version"):
            return {"Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12"}
        if path.endswith("/info"):
            return {"DockerRootDir": "/var/lib/docker", "Driver": "overlay2", "DefaultRuntime": "runc", "Runtimes": self.runtimes,
                    "Plugins": {}, "SecurityOptions": [], "DriverStatus": []}
        if "/containers/json" in path:
            return [{"Id": key, "Names": ["/" + name]} for key, (name, _) in self.containers.items()]
        name, runtime = self.containers[path.split("/")[-2]]
        return {"Id": path.split("/")[-2], "Name": "/" + name, "HostConfig": {"Runtime": runtime}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        answer = self.server.state.answer(self.path)
        body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(200)
        self.send_header("Api-Version", "1.41")
        self.send_header("Ostype", "linux")
        self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass

    def address_string(self):
        return "local"


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--config-file", required=True)
    parser.add_argument("--containers", default="{}")
    parser.add_argument("--deaf", action="store_true")
    options, _ = parser.parse_known_args()
    server = Server(options.socket, Handler)
    server.state = State(options)
    signal.signal(signal.SIGHUP, server.state.hangup)
    print("ready", flush=True)
    server.serve_forever()


main()
