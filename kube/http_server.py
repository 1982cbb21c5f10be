"""Serves an ASGI application over HTTP: uvicorn on a socket, with limits of our own.

A door of its own, since whoever enters pays for uvicorn.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""How long a request may have begun before its headers are there."""

KEEP_ALIVE_SECONDS = 120
"""More than the 90 s after which Go closes an idle connection: were we first, a call could cross
the closing, and Go does not send a POST again."""


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


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with the limit that it lacks: on the time until the headers are there.

    A connection without a first byte is as good as an idle one: Go opens some in advance.
    """

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head(KEEP_ALIVE_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._unset_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_head()
        super().connection_lost(exc)

    def _await_head(self, seconds: float) -> None:
        self._unset_head()
        self._head = self.loop.call_later(seconds, self.transport.close)

    def _unset_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


@asynccontextmanager
async def serving(
    app: ASGIApp,
    address: tuple[str, int],
    *,
    tls: ssl.SSLContext | None = None,
    stop_seconds: int,
    protocol: type[Protocol] = Protocol,
) -> AsyncIterator[Bound]:
    """Serve until the context ends; then requests under way have `stop_seconds` to be answered.

    `address` is a host and a port; without a host all addresses, of both families where there are
    both.

    Raises:
        CannotListenError: The address is not to be had.
    """
    listener = _listener(*address)
    server = _Server(_config(app, protocol, tls, stop_seconds))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    host, port = listener.getsockname()[:2]
    try:
        yield Bound(host, port, task)
    finally:
        server.should_exit = True
        await task


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
