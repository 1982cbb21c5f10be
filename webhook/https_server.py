"""Serves the webhook's application over TLS: uvicorn on a socket of ours."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

IDLE_SECONDS = 120
"""Longer than the API server keeps an idle connection, so that it is the one who closes it."""

DRAIN_SECONDS = 5


class _Server(uvicorn.Server):
    """Signals belong to whoever runs the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpsServer:
    """Listens from its construction on; serves while `run` runs."""

    def __init__(self, application: FastAPI, address: tuple[str, int], tls: ssl.SSLContext) -> None:
        """Raises OSError where the address cannot be had."""
        self._server = _Server(_config(application, tls))
        self._listening = _listen(*address)

    async def run(self) -> NoReturn:
        """Serve until cancelled; what is being answered then is answered first."""
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._listening]))
        try:
            await asyncio.shield(serving)
            raise RuntimeError("the server ended by itself")
        finally:
            self._server.should_exit = True
            await serving


def _config(application: FastAPI, tls: ssl.SSLContext) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        ssl_context_factory=lambda _config, _default: tls,
    )


def _listen(host: str, port: int) -> socket.socket:
    """Without a host on all addresses, of both families where there are both."""
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(
            (host, port), family=socket.AF_INET6, backlog=1024, dualstack_ipv6=True
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)
