"""A fake kubectl on PATH: its `proxy` hands on what it hears to the API server of a kubeconfig.

As with the real one, a server that is away is told as text with status 500, and in its log, and
what its `--reject-` flags name as text with status 403: they count for the path as it is decoded.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_SCRIPT = r"""#!{python} -IS
import os, re, socket, sys, threading, time
from urllib.parse import unquote

flags = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
mode = os.environ.get("FAKE_KUBECTL", "")
if mode == "wrapped":
    os.environ["FAKE_KUBECTL"] = ""
    sys.exit(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-IS", *sys.argv]))
if mode == "ends":
    sys.exit("error: kubectl's own words")
if mode == "deaf":
    time.sleep(60)
if mode == "slow":
    time.sleep(0.7)
if mode == "asks":
    sys.stderr.write("Password: ")
    sys.stderr.write("(%s)\n" % sys.stdin.readline().strip())
    sys.stderr.flush()
file = flags.get("--kubeconfig") or os.environ["KUBECONFIG"]
port = int(re.search(r"server: http://127.0.0.1:(\d+)", open(file).read())[1])
AWAY = b"dial tcp 127.0.0.1: connect: connection refused\n"
TYPE = b"Content-Type: text/plain; charset=utf-8\r\n"
FAILED, REFUSED = b"HTTP/1.1 500 Internal Server Error\r\n", b"HTTP/1.1 403 Forbidden\r\n"


def hand_on(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def say(client, status, text):
    client.sendall(status + TYPE + b"Content-Length: %d\r\n\r\n" % len(text) + text)


def is_refused(request):
    method, target, _ = request.decode().split(" ", 2)
    path = unquote(target.partition("?")[0])
    paths = flags["--reject-paths"].split(",")
    return re.search(flags["--reject-methods"], method) or any(re.search(p, path) for p in paths)


def serve(client):
    request = client.recv(65536)
    if not request:
        return
    if is_refused(request):
        return say(client, REFUSED, b"Forbidden\n")
    try:
        server = socket.create_connection(("127.0.0.1", port))
    except OSError:
        sys.stderr.write("E1127 03:20:01.0 1 proxy_server.go:147] Error while proxying\n")
        sys.stderr.flush()
        return say(client, FAILED, AWAY)
    server.sendall(request)
    threading.Thread(target=hand_on, args=(client, server), daemon=True).start()
    hand_on(server, client)


listener = socket.socket(socket.AF_UNIX)
listener.bind(flags["--unix-socket"])
listener.listen()
print("Starting to serve", flush=True)
while True:
    connection, _ = listener.accept()
    if mode == "dies":
        os._exit(1)
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"""


def fake_kubectl(folder: Path) -> Path:
    """Write it below a folder, and return what PATH has to name.

    FAKE_KUBECTL says how it behaves: `ends` at once, `deaf`, `slow`, `asks` a password, `dies` at
    its first request, and `wrapped` by a program that starts it and waits; "" for well.
    """
    path = folder / "bin"
    path.mkdir(exist_ok=True)
    program = path / "kubectl"
    program.write_text(_SCRIPT.replace("{python}", os.path.realpath(sys.executable)))
    program.chmod(0o755)
    return path
