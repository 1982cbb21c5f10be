"""Requests to an API server over one pool of connections, with the credentials of an `Access`."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec
from aiohttp import AddrInfoType, ClientResponse, ClientSession, ClientTimeout, TCPConnector

MOST_CONNECTIONS = 100
"""The limit of the official client."""

IDLE_SECONDS = 60.0
"""The time for which an idle connection is kept. API servers keep them for 90 s, and a handshake
takes longer than most calls."""

KEEPALIVE_SECONDS = 15
"""TCP keep-alive: a connection ends when the peer acknowledges nothing for so long, or answers none
of three probes. The first probe is sent after this time of silence."""

_TCP = socket.IPPROTO_TCP
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_SECONDS),
    (_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_SECONDS // 3),
    (_TCP, socket.TCP_KEEPCNT, 3),
    (_TCP, socket.TCP_USER_TIMEOUT, KEEPALIVE_SECONDS * 1000),
)


DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Address and credentials of an API server.

    Attributes:
        authorization: The current value of the header, "" for none; raises UnavailableError.
        proxy: The proxy's URL; None for the one of the environment.
        server_name: The name in the server's certificate; None for the name in `host`.
        namespace: The namespace where the user names none.
    """

    host: str
    tls: SSLContext
    authorization: Callable[[], Awaitable[str]]
    proxy: str | None = None
    proxy_headers: Mapping[str, str] = field(default_factory=dict)
    server_name: str | None = None
    namespace: str = DEFAULT_NAMESPACE


def _new_socket(address: AddrInfoType) -> socket.socket:
    """A socket with TCP keep-alive.

    A host that vanished sends nothing, not even a reset: without keep-alive a watch would wait
    until its idle time-out.
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    for level, option, value in _KEEPALIVE:
        made.setsockopt(level, option, value)
    return made


def _environment_proxy(host: str) -> str | None:
    url = urlsplit(host)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)


class Transport:
    """Sends requests until it is closed.

    Only the proxy is read from the environment: by default aiohttp looks for a password in
    ~/.netrc before each request, which is not meant for API servers.
    """

    def __init__(self, access: Access, user_agent: str) -> None:
        self._access = access
        self.namespace = access.namespace
        self._headers = {"Accept": "application/json", "User-Agent": user_agent}
        connector = TCPConnector(
            limit=MOST_CONNECTIONS,
            ssl=access.tls,
            keepalive_timeout=IDLE_SECONDS,
            socket_factory=_new_socket,
        )
        # An event of a watch may be larger than aiohttp's own buffer.
        self.session = ClientSession(connector=connector, trust_env=False, read_bufsize=2**21)
        self._options: dict[str, Any] = {
            "proxy": access.proxy or _environment_proxy(access.host),
            "proxy_headers": access.proxy_headers or None,
            "server_hostname": access.server_name,
        }

    async def send(
        self, method: str, url: str, headers: dict[str, str], body: Any, limits: ClientTimeout
    ) -> ClientResponse:
        authorization = await self._access.authorization()
        known = {"Authorization": authorization} if authorization else {}
        return await self.session.request(
            method,
            self._access.host + url,
            headers={**self._headers, **known, **headers},
            data=None if body is None else msgspec.json.encode(body),
            timeout=limits,
            **self._options,
        )

    async def close(self) -> None:
        await self.session.close()
