"""The HTTP transport of calls to cameras, for zeep.

A camera may be slow, broken or hostile. So at most `LONGEST_ANSWER` bytes of an answer are read,
compressed answers are not decompressed, redirections are not followed, and zeep gets no XML that
`messages` refuses. Certificates are verified only if the Configuration names an authority: cameras
usually have self-signed ones.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from lxml.etree import tostring
from yarl import URL
from zeep.wsdl.utils import etree_to_string

from driver.discovery.onvif.credentials import Login
from driver.discovery.onvif.devices import Address, host_of
from driver.discovery.onvif.messages import XmlError, fault_codes, read_xml

LONGEST_ANSWER = 256 * 1024
"""Bytes."""

_UNAUTHORIZED = (401, 403)

_SENDER_AT_FAULT = 400
"""SOAP's status for a fault of the sender: a wrong login, or a wrong request."""

LOGIN_FAULTS = frozenset({"NotAuthorized", "FailedAuthentication"})
"""ONVIF's code is `ter:NotAuthorized`, WS-Security's `FailedAuthentication`."""


class UnreachableError(Exception):
    """Raised when a camera does not answer; the text is a part of a sentence."""


class RefusedError(UnreachableError):
    """Raised when a camera answers with a refusal or an error."""


class UnauthorizedError(RefusedError):
    """Raised when the login may be refused: further attempts may lock the account.

    Attributes:
        is_certain: Whether the camera names the login as the cause.
    """

    def __init__(self, status: str, *, is_certain: bool = True) -> None:
        super().__init__(status)
        self.is_certain = is_certain


@dataclass(frozen=True, slots=True)
class Target:
    """A camera to ask.

    Attributes:
        zone: See `ws_discovery_client.Sender`.
        login: The login to use; None for none.
        ip: The address of the host if that is a name. It is not resolved again here: it could then
            have another address, which was not checked.
    """

    address: Address
    zone: int = 0
    login: Login | None = None
    ip: str | None = None

    @property
    def url(self) -> URL:
        """The URL to call.

        Raises:
            ValueError: If it is invalid.
        """
        url = URL(self.address.url).with_user(None)
        if self.ip is not None:
            url = url.with_host(self.ip)
        is_link_local = (url.host or "").lower().startswith("fe80:")
        if self.zone and is_link_local and "%" not in url.authority:
            return url.with_host(f"{url.host}%{self.zone}")
        return url

    @property
    def name(self) -> str | None:
        """The host's name; None if it is an address."""
        return host_of(self.address.url) if self.ip is not None else None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The interface that zeep expects of an answer."""

    content: bytes
    status_code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Carrier:
    """The interface that zeep expects of a transport: it carries the calls to one camera."""

    def __init__(self, session: aiohttp.ClientSession, target: Target) -> None:
        self._session = session
        self._target = target

    async def post_xml(self, _: str, envelope: Any, headers: Mapping[str, str]) -> _Answer:
        """Post an envelope.

        Raises:
            RefusedError: For any status but 200.
            XmlError: If the answer cannot be read.
        """
        target = self._target
        host = {"Host": URL(target.address.url).authority} if target.name else {}
        async with self._session.post(
            target.url,
            data=etree_to_string(envelope),
            headers={**headers, **host},
            allow_redirects=False,
            server_hostname=target.name,
            middlewares=(aiohttp.DigestAuthMiddleware(*target.login),) if target.login else (),
        ) as response:
            if response.status != 200:
                raise await _refusal(response)
            return _Answer(tostring(read_xml(await _body(response))))


async def _refusal(response: aiohttp.ClientResponse) -> RefusedError:
    status = f"HTTP status {response.status}"
    if response.status in _UNAUTHORIZED:
        return UnauthorizedError(status)
    if response.status != _SENDER_AT_FAULT:
        return RefusedError(status)
    if fault := await _login_fault(response):
        return UnauthorizedError(f"{status} with the fault {fault}")
    return UnauthorizedError(status, is_certain=False)


async def _login_fault(response: aiohttp.ClientResponse) -> str:
    """The fault code in the body that names the login as the cause; "" if it does not."""
    try:
        found = fault_codes(read_xml(await _body(response)))
    except (XmlError, UnreachableError, aiohttp.ClientError):
        return ""
    return next((code for code in found if code in LOGIN_FAULTS), "")


def session(context: ssl.SSLContext, most_at_once: int) -> aiohttp.ClientSession:
    """The connections of all carriers. The caller closes it.

    Args:
        context: See `tls`.
        most_at_once: How many connections may be open.
    """
    connector = aiohttp.TCPConnector(
        ssl=context, resolver=_NoResolver(), limit=most_at_once, force_close=True
    )
    return aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
    )


class _NoResolver(AbstractResolver):
    """Resolves no name: `camera_places` has resolved and checked it before."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        raise OSError(f"{host} is no address")

    async def close(self) -> None:
        pass


def tls(authorities: str | None) -> ssl.SSLContext:
    """The TLS context for https.

    Args:
        authorities: CA certificates in PEM that verify cameras. "" verifies no camera; None
            disables verification.

    Raises:
        ssl.SSLError: If `authorities` is anything else.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authorities is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities:
        context.load_verify_locations(cadata=authorities)
    return context


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > LONGEST_ANSWER:
            response.close()
            raise UnreachableError(f"its answer has more than {LONGEST_ANSWER} bytes")
    return bytes(body)
