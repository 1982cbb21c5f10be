"""Serves an ASGI application over HTTP: uvicorn on a socket, with limits of our own.

A door of its own, since whoever enters pays for uvicorn.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kube.even_parts import EvenParts

logger = logging.getLogger(__name__)

HEAD_SECONDS = 10.0
"""How long a request may have begun before its headers are there."""

KEEP_ALIVE_SECONDS = 120
"""More than the 90 s after which Go closes an idle connection: were we first, a call could cross
the closing, and Go does not send a POST again."""

STALL_SECONDS = 30.0
"""How long a client may take nothing of an answer that waits for it."""

MOST_CONNECTIONS = 1_000
"""Of all clients together: more than three API servers that call two replicas have under way. Each
costs some 100 KB with TLS. uvicorn's own limit (`limit_concurrency`) answers 503 to everybody, also
where one client does nothing but hold connections, so that it would stop all others."""

QUIET_SECONDS = 60.0
"""How long it is not told again that connections are refused: they are many then."""

_DRAIN_POLL_SECONDS = 0.05


class CannotListenError(Exception):
    """Raised with a sentence when the address or the certificates cannot be used."""


class Bound(NamedTuple):
    """A server that answers.

    Attributes:
        server: Ends only when it is stopped, or failed.
    """

    host: str
    port: int
    server: asyncio.Task[None]


class Ending(NamedTuple):
    """How a server ends.

    Attributes:
        stop_seconds: How long requests under way have to be answered.
        drain_seconds: For clients that keep connections: how long calls are answered before that,
            each as its connection's last, unless all connections are closed sooner.
    """

    stop_seconds: int
    drain_seconds: float = 0.0


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits that it lacks.

    On the time until the headers are there: a connection without a first byte is as good as an idle
    one, since Go opens some in advance. On the time for which a client takes nothing of its answer.
    And on connections, see `EvenParts`; `serving` gives each server its own.
    """

    parts: EvenParts[str] = EvenParts(MOST_CONNECTIONS)
    quiet_until = 0.0
    _head: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _counted: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = self.client[0] if self.client else ""
        if self.parts.take(peer):
            self._counted = peer
            self._await_head(KEEP_ALIVE_SECONDS)
        else:
            self._tell_refused(peer)
            transport.abort()

    def _tell_refused(self, peer: str) -> None:
        limited, now = type(self), self.loop.time()
        if now >= limited.quiet_until:
            limited.quiet_until = now + QUIET_SECONDS
            logger.warning("connections refused client=%s: it has its part of all", peer)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._unset_head()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._unset_stall()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_head()
        self._unset_stall()
        if self._counted is not None:
            self.parts.give_back(self._counted)
        super().connection_lost(exc)

    def _await_head(self, seconds: float) -> None:
        self._unset_head()
        self._head = self.loop.call_later(seconds, self.transport.close)

    def _unset_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _unset_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None


@asynccontextmanager
async def serving(
    app: ASGIApp,
    address: tuple[str, int],
    *,
    tls: ssl.SSLContext | None = None,
    ending: Ending,
    protocol: type[Protocol] = Protocol,
) -> AsyncIterator[Bound]:
    """Serve until the context ends.

    Args:
        app: What answers.
        address: A host and a port; without a host all addresses, of both families where there are
            both.
        tls: Over TLS.
        ending: How long it takes when the context ends.
        protocol: What reads requests.

    Raises:
        CannotListenError: The address is not to be had.
    """
    listener = _listener(*address)
    farewell = _Farewell(app)
    # uvicorn makes its protocols of a class, without arguments.
    limited = type(protocol.__name__, (protocol,), {"parts": EvenParts(MOST_CONNECTIONS)})
    server = _Server(_config(farewell, limited, tls, ending.stop_seconds))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    host, port = listener.getsockname()[:2]
    try:
        yield Bound(host, port, task)
    finally:
        farewell.is_said = True
        await _drained(server, ending.drain_seconds)
        server.should_exit = True
        await task


class _Farewell:
    """Says with each answer that the connection ends, once the server is to end.

    A client that was not told may send a call into the closing, and gets no answer: the API server
    goes on with its connections to a webhook after the pod has left its Service.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.is_said = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if self.is_said and message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, told)


async def _drained(server: uvicorn.Server, seconds: float) -> None:
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    while server.server_state.connections and clock() < end:  # noqa: ASYNC110  It tells nobody.
        await asyncio.sleep(_DRAIN_POLL_SECONDS)


def _listener(host: str, port: int) -> socket.socket:
    """Bind and listen at once: from here on clients are kept waiting, not turned away."""
    dualstack = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dualstack or ":" in host else socket.AF_INET
    try:
        listener = socket.create_server(
            (host, port), family=family, backlog=1024, dualstack_ipv6=dualstack
        )
    except OSError as error:
        message = f"cannot listen on {host} port {port}: {error.strerror}"
        raise CannotListenError(message) from error
    # Head and body are written apart: each answer would wait 40 ms for the ACK of its head.
    # uvloop sets this by itself, asyncio not for a socket such as this.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _config(
    app: ASGIApp, protocol: type[Protocol], tls: ssl.SSLContext | None, stop_seconds: int
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=stop_seconds,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
    )


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers: those are the process's own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
