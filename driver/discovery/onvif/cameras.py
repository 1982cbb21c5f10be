"""Cameras on the network, asked over HTTP what they are.

The calls are made and read by onvif-zeep-async and zeep, with the service's description that comes
with them. A camera may be slow, broken or hostile, so what carries the calls is ours: each request
has its time, of an answer no more than `LONGEST_ANSWER` bytes are read, packed answers are not
unpacked, redirections not followed, and what `xml_trees` refuses is refused before zeep sees it.
Certificates are looked at only where the Configuration says by which authority: those of cameras
are their own, as a rule.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp
import onvif
from aiohttp.abc import AbstractResolver, ResolveResult
from lxml.etree import tostring
from onvif.client import ZeepAsyncClient
from onvif.transport import ASYNC_TRANSPORT
from yarl import URL
from zeep import Settings
from zeep.exceptions import Fault
from zeep.wsdl import Document
from zeep.wsdl.utils import etree_to_string
from zeep.wsse import UsernameToken

from driver.discovery.onvif.answers import clock, information, network
from driver.discovery.onvif.credentials import Login
from driver.discovery.onvif.devices import Address, Facts, host_of
from driver.discovery.onvif.xml_trees import read_xml

REQUEST_TIMEOUT = timedelta(seconds=3)
LONGEST_ANSWER = 256 * 1024
"""Bytes."""

_DESCRIPTION = Path(onvif.__file__).parent / "wsdl" / "devicemgmt.wsdl"
_SERVICE = "{http://www.onvif.org/ver10/device/wsdl}DeviceBinding"
_SETTINGS = Settings(
    strict=False, xsd_ignore_sequence_order=True, forbid_dtd=True, forbid_external=True
)
"""Not strict: cameras add elements, leave some out, and put them in another order."""

_UNAUTHORIZED = (400, 401, 403)
"""Cameras answer 400 where SOAP has them say that the sender is at fault."""

for _library in ("onvif", "zeep"):
    logging.getLogger(_library).setLevel(logging.CRITICAL)  # reasons are ours to tell


class UnreachableError(Exception):
    """Raised when a camera does not answer; the text goes into a sentence."""


class RefusedError(UnreachableError):
    """Raised when a camera answers that it will not, or cannot."""


class UnauthorizedError(RefusedError):
    """Raised when it may be the login: asking again and again may lock it out."""


@dataclass(frozen=True, slots=True)
class Target:
    """A camera to ask.

    Attributes:
        zone: See `ws_discovery_client.Sender`.
        login: Who asks; None for nobody in particular.
        ip: Of the host, where that is a name. No name is looked up again here: it might have
            another address by then.
    """

    address: Address
    zone: int = 0
    login: Login | None = None
    ip: str | None = None

    @property
    def url(self) -> URL:
        """Where it is to be asked from here.

        Raises:
            ValueError: If that is no URL.
        """
        url = URL(self.address.url).with_user(None)
        if self.ip is not None:
            url = url.with_host(self.ip)
        if (
            not self.zone
            or not (url.host or "").lower().startswith("fe80:")
            or "%" in url.authority
        ):
            return url
        return url.with_host(f"{url.host}%{self.zone}")

    @property
    def name(self) -> str | None:
        """The host's name; None where it has none."""
        return host_of(self.address.url) if self.ip is not None else None


class Cameras:
    """All cameras. Use it as a context; connections are closed at its end.

    Args:
        authorities: Certificates in PEM by which https is checked; None for not at all.
        most_at_once: Connections.
    """

    def __init__(self, authorities: str | None, most_at_once: int) -> None:
        self._authorities = authorities
        self._most_at_once = most_at_once

    async def __aenter__(self) -> Cameras:
        connector = aiohttp.TCPConnector(
            ssl=tls(self._authorities),
            resolver=_NoResolver(),
            limit=self._most_at_once,
            force_close=True,
        )
        await asyncio.to_thread(_description)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._session.close()

    async def clock(self, target: Target) -> datetime | None:
        """What a camera's clock shows; None if it does not tell. A camera that answers is there.

        Everybody may ask for it, but some cameras want to know who asks all the same.

        Raises:
            UnreachableError: If it does not answer.
        """
        anonymous = replace(target, login=None)
        try:
            answer = await self._ask(anonymous, "GetSystemDateAndTime", None)
        except UnauthorizedError:
            if target.login is None:
                raise
            answer = await self._ask(target, "GetSystemDateAndTime", None)
        return clock(answer)

    async def facts(self, target: Target, now: datetime | None) -> Facts:
        """What a camera says of itself; nothing that it refuses.

        Args:
            target: The camera.
            now: What its clock shows.

        Raises:
            UnreachableError: If it does not answer, other than with a refusal.
        """
        told = Facts()
        with suppress(RefusedError):
            told = Facts(network(await self._ask(target, "GetNetworkInterfaces", now)))
        with suppress(RefusedError):
            answer = await self._ask(target, "GetDeviceInformation", now)
            told = Facts(told.network, information(answer))
        return told

    async def _ask(self, target: Target, operation: str, now: datetime | None) -> Any:
        """What a camera answers; None if it refuses in an answer that is one."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT.total_seconds()):
                return await self._service(target, now)[operation]()
        except Fault:
            return None
        except UnreachableError:
            raise
        except TimeoutError as error:
            text = f"no answer within {REQUEST_TIMEOUT.total_seconds():g} seconds"
            raise UnreachableError(text) from error
        except Exception as error:  # what a stranger sends can be wrong in many ways
            raise UnreachableError(_said(error)) from error

    def _service(self, target: Target, now: datetime | None) -> Any:
        """The device service of a camera, for one call."""
        login, carrier = target.login, _Carrier(self._session, target)
        token = login and UsernameToken(*login, use_digest=True, created=now, zulu_timestamp=True)
        client = ZeepAsyncClient(_description(), token, carrier, settings=_SETTINGS)
        return client.create_service(_SERVICE, str(target.url))


@dataclass(frozen=True, slots=True)
class _Answer:
    """What zeep takes for an answer."""

    content: bytes
    status_code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class _Carrier:
    """What zeep takes for a transport: carries the calls of one camera."""

    def __init__(self, session: aiohttp.ClientSession, target: Target) -> None:
        self._session = session
        self._target = target

    async def post_xml(self, _: str, envelope: Any, headers: Mapping[str, str]) -> _Answer:
        """Post an envelope.

        Raises:
            RefusedError: On any status but 200.
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
                kind = UnauthorizedError if response.status in _UNAUTHORIZED else RefusedError
                raise kind(f"HTTP status {response.status}")
            return _Answer(tostring(read_xml(await _body(response))))


@cache
def _description() -> Document:
    """What ONVIF says of the device service; read from disk once."""
    return Document(str(_DESCRIPTION), ASYNC_TRANSPORT, settings=_SETTINGS)


class _NoResolver(AbstractResolver):
    """Looks no name up: that is done before, and what it is found at judged."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        raise OSError(f"{host} is no address")

    async def close(self) -> None:
        pass


def tls(authorities: str | None) -> ssl.SSLContext:
    """How https is spoken.

    Args:
        authorities: Certificates in PEM; the empty string vouches for nobody.

    Raises:
        ssl.SSLError: On anything else.
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


def _said(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientSSLError):
        return f"https fails ({type(error.os_error).__name__})"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name has no address"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return os.strerror(error.os_error.errno).lower()
    return f"its answer makes no sense ({type(error).__name__})"
