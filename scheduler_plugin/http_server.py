"""What serves kube-scheduler and the pages: a socket, with TLS and limits."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from kube.api import CertificateError, LiveTls, TlsFiles, follow_files, show_files
from scheduler_plugin.client_names import why_not_heard
from scheduler_plugin.http_connection import Connection, Connections
from scheduler_plugin.http_limits import DEFAULT_LIMITS, Limits
from scheduler_plugin.http_responses import Application, Request, Response, plain
from scheduler_plugin.listening import Listening
from scheduler_plugin.listening import TlsFiles as TlsPaths

logger = logging.getLogger(__name__)

BACKLOG = 1024


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
        host, port = listener.getsockname()[:2]
        connections = Connections()
        app_for = _choosing(app, listening.tls)
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(app_for, limits, connections),
            sock=listener,
            ssl=tls,
            backlog=BACKLOG,
        )
        task = asyncio.create_task(server.serve_forever())
        try:
            yield Bound(host, port, task)
        finally:
            server.close()
            await connections.stop(limits.stop_seconds)
            task.cancel()
            await asyncio.wait((task,))


def _listener(listening: Listening) -> socket.socket:
    """Bind and listen at once: from here on clients are kept waiting, not turned away."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    address = (listening.host, listening.port)
    try:
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        message = f"cannot listen on {listening.host} port {listening.port}: {error.strerror}"
        raise CannotListenError(message) from error
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


def _choosing(app: Application, tls: TlsPaths | None) -> Callable[[asyncio.Transport], Application]:
    """Who answers a client: once, when the handshake is done, it is looked who is there."""
    if tls is None:
        return lambda _: app
    allowed = tls.client_names

    def app_for(transport: asyncio.Transport) -> Application:
        certificate = transport.get_extra_info("ssl_object").getpeercert()
        if why := why_not_heard(certificate or {}, allowed):
            client = transport.get_extra_info("peername")
            logger.warning("not heard client=%s why=%s", client, why)
            return _refusing(why)
        return app

    return app_for


def _refusing(why: str) -> Application:
    """Answers everything with the reason."""

    async def app(_: Request) -> Response:
        return plain(403, why)

    return app
