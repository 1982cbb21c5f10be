"""One Filter call over HTTP, with different servers around the same handler.

    python -m bench.extender_servers [--rounds 7] [--calls 400]

The client is this process, on one kept connection with TCP_NODELAY, as Go has it; each server is a
process of its own. In every round each server answers the same calls, one after the other. CPU is
that of the server process for one call, by the scheduler's own clock. `fastapi-models` is the one
that lets pydantic read the body; all others run our decoder, encoder and a verdict that passes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import httptools
import uvicorn
import uvloop
from aiohttp import web
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

from kube.shapes.reading import JsonObject
from scheduler_plugin.extender.http_app import ExtenderApp
from scheduler_plugin.extender.http_server import serving
from scheduler_plugin.extender.kube_scheduler import Extender
from scheduler_plugin.extender.listening import Listening
from scheduler_plugin.extender.messages import (
    Answer,
    BindArguments,
    NotAnswered,
    Passed,
    decode_filter,
    encode_error,
    encode_filter,
)
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.names import Reason

OURS = "ours"
NAMES = (500, 5_000)
REFUSED = Refused(Reason.OVER_LIMIT, 'Queue "vision" would pass its limit of 8. ' + "x" * 100)


class Plugin:
    """Decides nothing."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def filter_once_known(self, pod: JsonObject) -> Answer:
        return self._answer

    def preempt(self, pod: JsonObject) -> Answer:
        return self._answer

    async def await_lease(self) -> None:
        """It is ready for ever."""

    async def bind(self, arguments: BindArguments) -> str:
        return ""

    async def is_bound(self, arguments: BindArguments) -> bool:
        return False

    def why_not_ready(self) -> str:
        return ""


def handle(body: bytes) -> bytes:
    call = decode_filter(body)
    return (
        encode_error(call.why) if isinstance(call, NotAnswered) else encode_filter(call, Passed())
    )


# The servers. Each announces its port and serves for ever.


def announce(port: int) -> None:
    print(port, flush=True)


def announced_listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    # uvicorn writes head and body apart. asyncio sets this only where the socket names its
    # protocol, which this one does not; without it each answer waits 40 ms for the client's ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    announce(listener.getsockname()[1])
    return listener


def ours(answer: Answer) -> Callable[[], Coroutine[Any, Any, None]]:
    async def serve() -> None:
        listening = Listening(host="127.0.0.1", port=0, tls=None)
        async with serving(ExtenderApp(cast(Extender, Plugin(answer))), listening) as bound:
            announce(bound.port)
            await asyncio.Event().wait()

    return serve


def on_uvicorn(app: Any, http: str) -> Callable[[], Coroutine[Any, Any, None]]:
    async def serve() -> None:
        quiet: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "off"}
        config = uvicorn.Config(app, http=http, ws="none", timeout_keep_alive=600, **quiet)
        await uvicorn.Server(config).serve(sockets=[announced_listener()])

    return serve


class FilterCall(BaseModel):
    """The call as a typed model."""

    Pod: dict[str, Any]
    NodeNames: list[str]


def fastapi_models() -> FastAPI:
    app = FastAPI()

    @app.post("/filter")
    async def answer(call: FilterCall) -> dict[str, Any]:
        return {"NodeNames": call.NodeNames, "Error": ""}

    return app


def fastapi_raw() -> FastAPI:
    app = FastAPI()

    @app.post("/filter")
    async def answer(request: Request) -> Response:
        return Response(handle(await request.body()), media_type="application/json")

    return app


async def aiohttp_web() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=handle(await request.read()), content_type="application/json")

    app = web.Application(client_max_size=4 << 20)
    app.router.add_post("/filter", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, announced_listener()).start()
    await asyncio.Event().wait()


class BareProtocol(asyncio.Protocol):
    """The least that answers: no task a call, no limits, no pipelining, no errors."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        answer = handle(b"".join(self._body))
        self._body.clear()
        head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            % len(answer)
        )
        self._transport.writelines((head, answer))


async def bare() -> None:
    server = await asyncio.get_running_loop().create_server(BareProtocol, sock=announced_listener())
    await server.serve_forever()


class Server(NamedTuple):
    """A server and the loop that it runs on."""

    serve: Callable[[], Coroutine[Any, Any, None]]
    uvloop: bool = True


APP = ExtenderApp(cast(Extender, Plugin(Passed())))
SERVERS = {
    OURS: Server(ours(Passed())),
    "ours, refusing": Server(ours(REFUSED)),
    "raw ASGI, httptools, uvloop": Server(on_uvicorn(APP, "httptools")),
    "raw ASGI, httptools, asyncio": Server(on_uvicorn(APP, "httptools"), uvloop=False),
    "raw ASGI, h11, asyncio": Server(on_uvicorn(APP, "h11"), uvloop=False),
    "fastapi-models, httptools, uvloop": Server(on_uvicorn(fastapi_models(), "httptools")),
    "fastapi-raw, httptools, uvloop": Server(on_uvicorn(fastapi_raw(), "httptools")),
    "aiohttp.web, uvloop": Server(aiohttp_web),
    "bare protocol, httptools, uvloop": Server(bare),
    "bare protocol, httptools, asyncio": Server(bare, uvloop=False),
}


def serve(name: str) -> None:
    """Run one server; its first line says the port."""
    server = SERVERS[name]
    factory = uvloop.new_event_loop if server.uvloop else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(server.serve())


# The client.


def a_body(names: int) -> bytes:
    """A call with a pod of 4 KB, as Go writes it."""
    env = [{"name": f"VARIABLE_{number}", "value": "x" * 20} for number in range(40)]
    mounts = [{"name": f"volume-{number}", "mountPath": f"/mnt/{number}"} for number in range(20)]
    pod = {
        "metadata": {
            "namespace": "default",
            "name": "a",
            "uid": "0f6e1e4e-3f6b-4d5e-9a55-1c9d8a7b6c5d",
            "labels": {"moorage.dev/queue": "vision", "app": "detector"},
        },
        "spec": {
            "containers": [
                {"name": "main", "image": "detector", "env": env, "volumeMounts": mounts}
            ],
            "resourceClaims": [{"name": "cam", "resourceClaimName": "cam"}],
        },
    }
    nodes = [f"ip-10-0-{n // 250}-{n % 250}.compute.internal" for n in range(names)]
    call = {"Pod": pod, "Nodes": None, "NodeNames": nodes}
    return json.dumps(call, separators=(",", ":")).encode()


class Connection:
    """One kept connection to one server process."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-m", "bench.extender_servers", "--serve", name]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        port = int(self._process.stdout.readline())
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def cpu(self) -> float:
        """Seconds on a CPU of the server's thread."""
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0]) / 1e9

    def call(self, body: bytes) -> float:
        """Seconds of one round trip."""
        head = f"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
        sent = (head + "Content-Type: application/json\r\n\r\n").encode() + body
        start = time.perf_counter()
        self._socket.sendall(sent)
        self._receive()
        return time.perf_counter() - start

    def _receive(self) -> None:
        got = self._socket.recv(1 << 20)
        while b"\r\n\r\n" not in got:
            got += self._socket.recv(1 << 20)
        head, _, rest = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        missing = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]) - len(rest)
        while missing:
            part = self._socket.recv(1 << 20)
            assert part, "closed in the middle of an answer"
            missing -= len(part)


@contextmanager
def connections() -> Iterator[dict[str, Connection]]:
    opened: dict[str, Connection] = {}
    try:
        for name in SERVERS:
            opened[name] = Connection(name)
        yield opened
    finally:
        for connection in opened.values():
            connection.close()


class Round(NamedTuple):
    """Microseconds."""

    cpu: float
    median: float
    p99: float


def a_round(connection: Connection, body: bytes, calls: int) -> Round:
    for _ in range(20):
        connection.call(body)
    cpu = connection.cpu()
    times = sorted(connection.call(body) for _ in range(calls))
    used = connection.cpu() - cpu
    return Round(used / calls * 1e6, times[calls // 2] * 1e6, times[calls * 99 // 100] * 1e6)


def measure(opened: dict[str, Connection], names: int, rounds: int, calls: int) -> None:
    body = a_body(names)
    found: dict[str, list[Round]] = {name: [] for name in opened}
    for _ in range(rounds):
        for name, connection in opened.items():
            found[name].append(a_round(connection, body, calls))
    print(f"\n{names} names, {len(body)} bytes; microseconds, medians of {rounds} rounds")
    print(f"{'server':36}{'CPU':>8}{'ratio':>7}{'p50':>8}{'ratio':>7}{'p99':>8}")
    for name, line in found.items():
        print_line(name, line, found[OURS])


def print_line(name: str, rounds: list[Round], baseline: list[Round]) -> None:
    """Ratios are medians of the rounds' own, which are free of what all of a round share."""
    cpu, median, p99 = (statistics.median(column) for column in zip(*rounds, strict=True))
    pairs = list(zip(rounds, baseline, strict=True))
    cpu_ratio = statistics.median(a.cpu / b.cpu for a, b in pairs)
    ratio = statistics.median(a.median / b.median for a, b in pairs)
    print(f"{name:36}{cpu:8.0f}{cpu_ratio:7.2f}{median:8.0f}{ratio:7.2f}{p99:8.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--serve", choices=list(SERVERS))
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    with connections() as opened:
        for names in NAMES:
            measure(opened, names, options.rounds, options.calls)


if __name__ == "__main__":
    main()
