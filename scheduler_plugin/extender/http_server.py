"""The HTTP server: it serves all clients at a loopback address, else clients with a certificate."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from kube.http_server import Bound, CannotListenError, Ending, Protocol
from kube.http_server import serving as serving_all
from kube.live_tls import CertificateError, LiveTls, TlsFiles, follow_files, show_files
from scheduler_plugin.extender.http_app import DEFAULT_LIMITS, Limits
from scheduler_plugin.extender.http_bodies import plain, respond
from scheduler_plugin.extender.http_hosts import LoopbackHosts
from scheduler_plugin.extender.listening import Listening, why_not_allowed
from scheduler_plugin.extender.listening import TlsFiles as TlsPaths

logger = logging.getLogger(__name__)


@asynccontextmanager
async def serving(
    app: ASGIApp, listening: Listening, limits: Limits = DEFAULT_LIMITS
) -> AsyncIterator[Bound]:
    """Serve until the context ends; then finish requests under way within their limit.

    With TLS, every request of a client whose certificate has no allowed name is answered with
    status 403. Without TLS, so is every request to a loopback address under another host name.

    Raises:
        CannotListenError: If the address is not available, or a certificate cannot be read.
    """
    async with (
        _mutual_tls(listening.tls) as tls,
        serving_all(
            app if listening.tls else LoopbackHosts(app),
            (listening.host, listening.port),
            tls=tls,
            ending=Ending(limits.stop_seconds),
            protocol=named_clients(listening.tls.client_names) if listening.tls else Protocol,
        ) as bound,
    ):
        yield bound


@asynccontextmanager
async def _mutual_tls(paths: TlsPaths | None) -> AsyncIterator[ssl.SSLContext | None]:
    """The TLS context of the listener; the files are read again whenever they change."""
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


def named_clients(allowed: frozenset[str]) -> type[Protocol]:
    """A protocol that answers clients whose certificate has one of these names, over mutual TLS.

    It is a class because uvicorn instantiates its protocol class without arguments.
    """

    class NamedClients(Protocol):
        """Checks the client's certificate once, after the handshake."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            certificate = transport.get_extra_info("ssl_object").getpeercert()
            if why := why_not_allowed(certificate or {}, allowed):
                logger.warning("client refused client=%s why=%s", self.client, why)
                self.app = _refusing(why)

    return NamedClients


def _refusing(why: str) -> ASGIApp:
    """An application that answers every request with status 403 and the reason."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await respond(plain(403, why), send)

    return app
