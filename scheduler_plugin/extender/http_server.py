"""What serves kube-scheduler and the pages: uvicorn on a socket, with TLS and limits of our own."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kube.api import CertificateError, LiveTls, TlsFiles, follow_files, show_files
from scheduler_plugin.extender.client_names import why_not_heard
from scheduler_plugin.extender.http_app import DEFAULT_LIMITS, Limits
from scheduler_plugin.extender.http_responses import (
    Application,
    Receive,
    Scope,
    Send,
    plain,
    respond,
)
from scheduler_plugin.extender.listening import Listening
from scheduler_plugin.extender.listening import TlsFiles as TlsPaths

logger = logging.getLogger(__name__)

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


@asynccontextmanager
async def serving(
    app: Application, listening: Listening, limits: Limits = DEFAULT_LIMITS
) -> AsyncIterator[Bound]:
    """Serve until the context ends; then requests under way are finished within their limit.

    With TLS, a client whose certificate is good and names nobody who is heard is told so, with
    status 403, whatever it asks.

    Raises:
        CannotListenError: The address is not to be had, or a certificate not to be read.
    """
    async with _mutual_tls(listening.tls) as tls:
        listener = _listener(listening)
        protocol = _protocol(listening.tls)
        server = _Server(_config(app, protocol, tls, limits))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        host, port = listener.getsockname()[:2]
        try:
            yield Bound(host, port, task)
        finally:
            server.should_exit = True
            await task


def _listener(listening: Listening) -> socket.socket:
    """Bind and listen at once: from here on clients are kept waiting, not turned away."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    address = (listening.host, listening.port)
    try:
        listener = socket.create_server(address, family=family, backlog=1024)
    except OSError as error:
        message = f"cannot listen on {listening.host} port {listening.port}: {error.strerror}"
        raise CannotListenError(message) from error
    # Head and body are written apart: each answer would wait 40 ms for the ACK of its head.
    # uvloop sets this by itself, asyncio not for a socket such as this.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


@asynccontextmanager
async def _mutual_tls(paths: TlsPaths | None) -> AsyncIterator[ssl.SSLContext | None]:
    """The context of the listener; what the files say is read again whenever it changes."""
    if paths is None:
        yield None
        return
    live = LiveTls(asks_clients=True)
    files = TlsFiles(Path(paths.certificate), Path(paths.key), Path(paths.client_ca))
    try:
        shown = show_files(live, files)
    except CertificateError as error:
        raise CannotListenError(str(error)) from error
    following = asyncio.create_task(follow_files(live, files, shown))
    try:
        yield live.context
    finally:
        following.cancel()
        await asyncio.wait([following])


def _config(
    app: Application,
    protocol: type[HttpToolsProtocol],
    tls: ssl.SSLContext | None,
    limits: Limits,
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
        timeout_graceful_shutdown=limits.stop_seconds,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
    )


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers: those are the process's own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _ImpatientProtocol(HttpToolsProtocol):
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


def _protocol(tls: TlsPaths | None) -> type[HttpToolsProtocol]:
    """How each connection is served: uvicorn makes its protocols of a class, without arguments."""
    if tls is None:
        return _ImpatientProtocol
    allowed = tls.client_names

    class NamedClients(_ImpatientProtocol):
        """Looks once, when the handshake is done, at who is there."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            certificate = transport.get_extra_info("ssl_object").getpeercert()
            if why := why_not_heard(certificate or {}, allowed):
                logger.warning("not heard client=%s why=%s", self.client, why)
                self.app = _refusing(why)

    return NamedClients


def _refusing(why: str) -> Application:
    """Answers everything with the reason."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await respond(plain(403, why), send)

    return app
