"""OPC UA servers on the network, asked which servers they know of.

A server may be slow, gone, or hostile: whatever it does costs it its own place in the list, after
`SERVER_TIMEOUT` at the latest, and no more than `LONGEST_ANSWER` bytes are read from it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

from driver.discovery.name_servers import look_up
from driver.discovery.opcua.applications import Application
from driver.discovery.opcua.channel import Channel, ChannelError, connected
from driver.discovery.opcua.codecs import Servers, UaStatusCodeError, ua
from driver.discovery.opcua.details import split_url

SERVER_TIMEOUT = timedelta(seconds=5)
CONNECT_TIMEOUT = timedelta(seconds=3)
"""As Akri's."""

LONGEST_ANSWER = 512 * 1024
"""Bytes; a few thousand servers. The library takes up to half a second to read as much."""

LONGEST_GREETING = 4096
"""Bytes; an Acknowledge has 28, and an Error a sentence."""

DEFAULT_PORT = 4840
MOST_ADDRESSES = 3
"""Of one name, which are tried one after another."""

logging.getLogger("asyncua").setLevel(logging.CRITICAL)  # reasons are ours to tell


class UnreachableError(Exception):
    """Raised when a server does not answer as it should; the text goes into a sentence."""


class Told(NamedTuple):
    """What a server tells.

    Attributes:
        applications: All that it knows of, itself included.
        by: The address at which it was asked.
    """

    applications: list[Application]
    by: str


async def find_servers(url: str, within: timedelta = SERVER_TIMEOUT) -> Told:
    """All applications that the server at a URL knows of, itself included.

    Raises:
        UnreachableError: If it does not tell in time, or in a way that makes sense.
    """
    try:
        async with asyncio.timeout(within.total_seconds()):
            return await _ask(url)
    except TimeoutError as error:
        text = f"no answer within {within.total_seconds():g} seconds"
        raise UnreachableError(text) from error
    except Exception as error:  # the library reads foreign bytes
        raise UnreachableError(_why(error)) from error


def _why(error: Exception) -> str:
    match error:
        case ChannelError():
            return str(error)
        case UaStatusCodeError():
            return f"it refuses ({type(error).__name__})"
        case socket.gaierror() | UnicodeError():
            return "its name has no address"
        case OSError() if error.errno:
            return os.strerror(error.errno).lower()
        case OSError() | EOFError():
            return "it ended the connection"
        case _:
            return f"its answer makes no sense ({type(error).__name__})"


async def addresses_of(url: str) -> list[str]:
    """The addresses that the host of a URL has; none if it has none."""
    host, port = _address(url)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
            return [one.address for one in await look_up(host, port)]
    except (OSError, UnicodeError, TimeoutError):
        return []


async def is_served(url: str, addresses: Iterable[str]) -> bool:
    """Whether an OPC UA server greets at a URL, at one of these addresses of its host.

    Whatever else is there, or nothing, is one and the same: strangers tell of URLs.
    """
    _, port = _address(url)
    for address in islice(addresses, MOST_ADDRESSES):
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                if await _greets(url, address, port):
                    return True
    return False


async def _greets(url: str, address: str, port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    try:
        await Channel(reader, writer, LONGEST_GREETING).greet(url)
    except UaStatusCodeError:  # it will not be greeted by this URL, and says so as a server does
        return True
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001 - the library reads foreign bytes
        return False
    finally:
        writer.transport.abort()
    return True


async def _ask(url: str) -> Told:
    request = ua.FindServersRequest()
    request.Parameters.EndpointUrl = url
    answered = ua.FindServersResponse().TypeId
    streams = await _connect(url)
    by = str(streams[1].get_extra_info("peername")[0])
    async with connected(streams, url, LONGEST_ANSWER) as channel:
        servers = (await channel.ask(request, answered, Servers)).servers
    return Told([_application(told) for told in servers], by)


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first address that has somebody listening."""
    host, port = _address(url)
    *others, last = (await look_up(host, port))[:MOST_ADDRESSES]
    for other in others:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                return await asyncio.open_connection(other.address, port)
    return await asyncio.open_connection(last.address, port)


def _address(url: str) -> tuple[str, int]:
    parts = split_url(url)
    assert parts
    return parts.hostname or "", parts.port or DEFAULT_PORT


def _application(told: ua.ApplicationDescription) -> Application:
    return Application(
        name=_text(told.ApplicationName.Text),
        is_server=told.ApplicationType == ua.ApplicationType.Server,
        is_both=told.ApplicationType == ua.ApplicationType.ClientAndServer,
        uri=_text(told.ApplicationUri),
        product_uri=_text(told.ProductUri),
        discovery_urls=tuple(_text(url) for url in told.DiscoveryUrls or ()),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
