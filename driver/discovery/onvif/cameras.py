"""The client of ONVIF cameras: their clock, network addresses and device information.

onvif-zeep-async and zeep make and read the calls, with the description of the service that they
ship. Each call has a timeout; `http_carrier` limits the size of an answer.
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
    """The time of a camera's clock; None if the answer has none."""
    date, time = _value_at(answer, "UTCDateTime", "Date"), _value_at(answer, "UTCDateTime", "Time")
    try:
        day = (date.Year, date.Month, date.Day)
        return datetime(*day, time.Hour, time.Minute, time.Second, tzinfo=UTC)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def network(answer: Any) -> tuple[str, str] | None:
    """The IP and the MAC address that a camera reports; None if one is missing.

    Of several addresses the first counts, as in Akri.
    """
    interfaces = answer if isinstance(answer, list) else []
    ips = [ip for one in interfaces for found in _configured(one) if (ip := _words(found))]
    macs = [mac for one in interfaces if (mac := _words(_value_at(one, "Info", "HwAddress")))]
    return (ips[0], macs[0]) if ips and macs else None


def information(answer: Any) -> Mapping[str, str]:
    """The device information of a camera, by the names of `GetDeviceInformationResponse`."""
    found = {name: _words(_value_at(answer, name)) for name in _INFORMATION}
    return {name: value for name, value in found.items() if value}


def _configured(interface: Any) -> list[Any]:
    """The IPv4 addresses of a network interface, in the order of the schema."""
    config = _value_at(interface, "IPv4", "Config")
    several = [*(_value_at(config, "Manual") or ()), _value_at(config, "LinkLocal")]
    return [_value_at(one, "Address") for one in (*several, _value_at(config, "FromDHCP"))]


def _value_at(value: Any, *path: str) -> Any:
    """The value at a path of attribute names; None if the path ends before."""
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
"""Not strict: cameras add elements, omit some, and change their order."""

for _library in ("onvif", "zeep"):
    logging.getLogger(_library).setLevel(logging.CRITICAL)  # this module reports the reasons


@asynccontextmanager
async def connected(context: ssl.SSLContext, most_at_once: int) -> AsyncIterator[Cameras]:
    """The client of all cameras; its connections are closed at the end.

    Args:
        context: See `http_carrier.tls`.
        most_at_once: How many connections may be open.
    """
    await asyncio.to_thread(_description)
    async with session(context, most_at_once) as connections:
        yield Cameras(connections)


class Cameras:
    """The client of all cameras, see `connected`."""

    def __init__(self, connections: aiohttp.ClientSession) -> None:
        self._session = connections

    async def clock(self, target: Target) -> datetime | None:
        """The time of a camera's clock; None if the answer has none. The camera is then present.

        ONVIF requires no login for this call, but some cameras do.

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
        """The facts that a camera reports, and the error with which it refused others, if it did.

        Args:
            target: The camera.
            now: The time of its clock.

        Raises:
            UnreachableError: If it does not answer; a refusal is an answer.
        """
        found, refusal = Facts(), None
        try:
            found = Facts(network(await self._fact(target, "GetNetworkInterfaces", now)))
        except RefusedError as error:
            refusal = error
        try:
            answer = await self._fact(target, "GetDeviceInformation", now)
            found = Facts(found.network, information(answer))
        except RefusedError as error:
            refusal = refusal or error
        return found, refusal

    async def _fact(self, target: Target, operation: str, now: datetime | None) -> Any:
        """The answer of a camera; None for a fault that has nothing to do with the login."""
        try:
            return await self._call(target, operation, now)
        except Fault as fault:
            if _is_of_login(fault):
                raise UnauthorizedError("the fault NotAuthorized") from fault
            return None

    async def _ask(self, target: Target, operation: str, now: datetime | None) -> Any:
        """The answer of a camera; None for a SOAP fault."""
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
        except Exception as error:  # untrusted answers can fail in many ways
            raise UnreachableError(_reason(error)) from error

    def _service(self, target: Target, now: datetime | None) -> Any:
        """A client of a camera's device service, for one call."""
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
    """ONVIF's description of the device service; read from disk once."""
    return Document(str(_DESCRIPTION), ASYNC_TRANSPORT, settings=_SETTINGS)


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientSSLError):
        return f"https fails ({type(error.os_error).__name__})"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name has no address"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return os.strerror(error.os_error.errno).lower()
    return f"its answer is invalid ({type(error).__name__})"
