"""Serves an ASGI application over HTTP: uvicorn on a socket, with additional limits.

This module is a door of its own, since importing it loads uvicorn.
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

from kube.fair_limit import FairLimit

logger = logging.getLogger(__name__)

HEAD_SECONDS = 10.0
"""The time from the first byte of a request to the end of its headers."""

KEEP_ALIVE_SECONDS = 120
"""The time after which an idle connection is closed. Longer than the 90 s of Go clients: if the
server closed first, a call could cross the close, and Go does not retry a POST."""

STALL_SECONDS = 30.0
"""The time for which a client may read nothing of its response."""

MOST_CONNECTIONS = 1_000
"""Connections of all clients together: more than three API servers that call two replicas open.
Each takes about 100 KB with TLS. uvicorn's own limit (`limit_concurrency`) answers 503 to every
client, so that one client that only holds connections would stop all others."""

QUIET_SECONDS = 60.0
"""The shortest time between two log lines about refused connections."""

_DRAIN_POLL_SECONDS = 0.05


class CannotListenError(Exception):
    """Raised when the address cannot be listened on; its message is for the user."""


class Bound(NamedTuple):
    """A server that accepts connections.

    Attributes:
        server: The task of the server. It ends when the server is stopped, or failed.
    """

    host: str
    port: int
    server: asyncio.Task[None]


class Ending(NamedTuple):
    """How a server ends.

    Attributes:
        stop_seconds: The time that requests in flight have to be answered.
        drain_seconds: The time before that in which requests on kept connections are still
            answered, each with `Connection: close`. It ends once all connections are closed.
    """

    stop_seconds: int
    drain_seconds: float = 0.0


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits that uvicorn lacks.

    * `HEAD_SECONDS` for the headers. A connection without a first byte counts as idle, since Go
      opens some in advance.
    * `STALL_SECONDS` without a read of the response.
    * `FairLimit` of connections for each client; `serving` gives each server its own.
    """

    parts: FairLimit[str] = FairLimit(MOST_CONNECTIONS)
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
            self._log_refused(peer)
            transport.abort()

    def _log_refused(self, peer: str) -> None:
        limited, now = type(self), self.loop.time()
        if now >= limited.quiet_until:
            limited.quiet_until = now + QUIET_SECONDS
            logger.warning(
                "connections refused client=%s: it has its share of %d", peer, MOST_CONNECTIONS
            )

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
        app: The application that answers requests.
        address: Host and port. Host "" is every address, of IPv4 and IPv6 where both exist.
        tls: The TLS context; None for plain HTTP.
        ending: The times of the shutdown when the context ends.
        protocol: The class that reads requests.

    Raises:
        CannotListenError: The address cannot be listened on.
    """
    listener = _listener(*address)
    closing = _ConnectionClose(app)
    # uvicorn creates protocols from a class, without arguments.
    limited = type(protocol.__name__, (protocol,), {"parts": FairLimit(MOST_CONNECTIONS)})
    server = _Server(_config(closing, limited, tls, ending.stop_seconds))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    host, port = listener.getsockname()[:2]
    try:
        yield Bound(host, port, task)
    finally:
        closing.is_ending = True
        await _drained(server, ending.drain_seconds)
        server.should_exit = True
        await task


class _ConnectionClose:
    """Adds `Connection: close` to each response once the server shuts down.

    Without it a client may send a request on a connection that is being closed, and gets no
    response: the API server goes on using its connections to a webhook after the pod has left its
    Service.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_last(message: Message) -> None:
            if self.is_ending and message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_last)


async def _drained(server: uvicorn.Server, seconds: float) -> None:
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    while server.server_state.connections and clock() < end:  # noqa: ASYNC110  There is no event.
        await asyncio.sleep(_DRAIN_POLL_SECONDS)


def _listener(host: str, port: int) -> socket.socket:
    """Bind and listen at once: from here on clients wait in the backlog and are not refused."""
    dualstack = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dualstack or ":" in host else socket.AF_INET
    try:
        listener = socket.create_server(
            (host, port), family=family, backlog=1024, dualstack_ipv6=dualstack
        )
    except OSError as error:
        message = f"cannot listen on {host} port {port}: {error.strerror}"
        raise CannotListenError(message) from error
    # Head and body are written separately: without this each response waits 40 ms for an ACK.
    # uvloop sets it itself; asyncio does not for a socket that it did not create.
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
    """uvicorn's server without its signal handlers: the process has its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
