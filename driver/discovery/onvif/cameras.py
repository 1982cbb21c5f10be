"""Cameras on the network, asked what they are.

The calls are made and read by onvif-zeep-async and zeep, with the service's description that comes
with them; each has its time, and `http_carrier` its bounds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import onvif
from onvif.client import ZeepAsyncClient
from onvif.transport import ASYNC_TRANSPORT
from zeep import Settings
from zeep.exceptions import Fault
from zeep.wsdl import Document
from zeep.wsse import UsernameToken

from driver.discovery.onvif.devices import Facts
from driver.discovery.onvif.http_carrier import (
    LOGIN_FAULTS,
    Carrier,
    RefusedError,
    Target,
    UnauthorizedError,
    UnreachableError,
    session,
)
from driver.discovery.onvif.messages import LONGEST_WORD

_INFORMATION = ("Manufacturer", "Model", "FirmwareVersion", "SerialNumber", "HardwareId")


def clock(answer: Any) -> datetime | None:
    """What a camera's clock shows; None if it does not say."""
    date, time = _told(answer, "UTCDateTime", "Date"), _told(answer, "UTCDateTime", "Time")
    try:
        day = (date.Year, date.Month, date.Day)
        return datetime(*day, time.Hour, time.Minute, time.Second, tzinfo=UTC)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def network(answer: Any) -> tuple[str, str] | None:
    """The IP and the MAC address that a camera says it has; None if one is missing.

    Of several the first, as Akri has it.
    """
    interfaces = answer if isinstance(answer, list) else []
    ips = [ip for one in interfaces for told in _configured(one) if (ip := _words(told))]
    macs = [mac for one in interfaces if (mac := _words(_told(one, "Info", "HwAddress")))]
    return (ips[0], macs[0]) if ips and macs else None


def information(answer: Any) -> Mapping[str, str]:
    """What a camera says it is, by the names of `GetDeviceInformationResponse`."""
    told = {name: _words(_told(answer, name)) for name in _INFORMATION}
    return {name: value for name, value in told.items() if value}


def _configured(interface: Any) -> list[Any]:
    """The IPv4 addresses of a network interface, in the order of the schema."""
    config = _told(interface, "IPv4", "Config")
    several = [*(_told(config, "Manual") or ()), _told(config, "LinkLocal")]
    return [_told(one, "Address") for one in (*several, _told(config, "FromDHCP"))]


def _told(value: Any, *path: str) -> Any:
    """What is at a path of names; None where it ends before."""
    for name in path:
        value = getattr(value, name, None)
    return value


def _words(text: Any) -> str:
    words = " ".join(text.split())[:LONGEST_WORD] if isinstance(text, str) else ""
    return words if words.isprintable() else ""


REQUEST_TIMEOUT = timedelta(seconds=3)

_DESCRIPTION = Path(onvif.__file__).parent / "wsdl" / "devicemgmt.wsdl"
_SERVICE = "{http://www.onvif.org/ver10/device/wsdl}DeviceBinding"
_SETTINGS = Settings(
    strict=False, xsd_ignore_sequence_order=True, forbid_dtd=True, forbid_external=True
)
"""Not strict: cameras add elements, leave some out, and put them in another order."""

for _library in ("onvif", "zeep"):
    logging.getLogger(_library).setLevel(logging.CRITICAL)  # reasons are ours to tell


@asynccontextmanager
async def connected(context: ssl.SSLContext, most_at_once: int) -> AsyncIterator[Cameras]:
    """All cameras; their connections are closed at the end.

    Args:
        context: See `http_carrier.tls`.
        most_at_once: Connections.
    """
    await asyncio.to_thread(_description)
    async with session(context, most_at_once) as connections:
        yield Cameras(connections)


class Cameras:
    """All cameras, see `connected`."""

    def __init__(self, connections: aiohttp.ClientSession) -> None:
        self._session = connections

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

    async def facts(
        self, target: Target, now: datetime | None
    ) -> tuple[Facts, RefusedError | None]:
        """What a camera says of itself, and how it refuses to say more, if it does.

        Args:
            target: The camera.
            now: What its clock shows.

        Raises:
            UnreachableError: If it does not answer, other than with a refusal.
        """
        told, refusal = Facts(), None
        try:
            told = Facts(network(await self._fact(target, "GetNetworkInterfaces", now)))
        except RefusedError as error:
            refusal = error
        try:
            answer = await self._fact(target, "GetDeviceInformation", now)
            told = Facts(told.network, information(answer))
        except RefusedError as error:
            refusal = refusal or error
        return told, refusal

    async def _fact(self, target: Target, operation: str, now: datetime | None) -> Any:
        """What a camera answers; None for a fault other than that it does not know who asks."""
        try:
            return await self._call(target, operation, now)
        except Fault as fault:
            if _is_of_login(fault):
                raise UnauthorizedError("the fault NotAuthorized") from fault
            return None

    async def _ask(self, target: Target, operation: str, now: datetime | None) -> Any:
        """What a camera answers; None if it refuses in an answer that is one."""
        try:
            return await self._call(target, operation, now)
        except Fault:
            return None

    async def _call(self, target: Target, operation: str, now: datetime | None) -> Any:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT.total_seconds()):
                return await self._service(target, now)[operation]()
        except (Fault, UnreachableError):
            raise
        except TimeoutError as error:
            text = f"no answer within {REQUEST_TIMEOUT.total_seconds():g} seconds"
            raise UnreachableError(text) from error
        except Exception as error:  # what a stranger sends can be wrong in many ways
            raise UnreachableError(_said(error)) from error

    def _service(self, target: Target, now: datetime | None) -> Any:
        """The device service of a camera, for one call."""
        login, carrier = target.login, Carrier(self._session, target)
        token = login and UsernameToken(*login, use_digest=True, created=now, zulu_timestamp=True)
        client = ZeepAsyncClient(_description(), token, carrier, settings=_SETTINGS)
        return client.create_service(_SERVICE, str(target.url))


def _is_of_login(fault: Fault) -> bool:
    codes = [fault.code, *(fault.subcodes or ())]
    names = {str(code).rpartition("}")[2].rpartition(":")[2] for code in codes}
    return not names.isdisjoint(LOGIN_FAULTS)


@cache
def _description() -> Document:
    """What ONVIF says of the device service; read from disk once."""
    return Document(str(_DESCRIPTION), ASYNC_TRANSPORT, settings=_SETTINGS)


def _said(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientSSLError):
        return f"https fails ({type(error.os_error).__name__})"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name has no address"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return os.strerror(error.os_error.errno).lower()
    return f"its answer makes no sense ({type(error).__name__})"
