"""The client of OPC UA servers on the network: which servers they know.

A server may be slow, absent or hostile. It can then lose only its own place in the list, after
`SERVER_TIMEOUT` at the latest. At most `LONGEST_ANSWER` bytes are read from it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import NamedTuple

from asyncua import Client, ua
from asyncua.ua.uaerrors import UaStatusCodeError

from driver.discovery.name_servers import look_up
from driver.discovery.opcua.applications import Application
from driver.discovery.opcua.bounded_channel import BoundedProtocol
from driver.discovery.opcua.details import SCHEME
from driver.discovery.reach import split_url

SERVER_TIMEOUT = timedelta(seconds=5)
CONNECT_TIMEOUT = timedelta(seconds=3)
"""As Akri's."""

LONGEST_ANSWER = 512 * 1024
"""Bytes; a few thousand servers. The library takes up to 0.5 s to read so much."""

LONGEST_GREETING = 4096
"""Bytes; an Acknowledge has 28, and an Error a sentence."""

DEFAULT_PORT = 4840
MOST_ADDRESSES = 3
"""Addresses of one name that are tried, one after another."""

logging.getLogger("asyncua").setLevel(logging.CRITICAL + 1)  # this module reports the reasons


class UnreachableError(Exception):
    """Raised when a server gives no valid answer; the text is a part of a sentence."""


class FoundServers(NamedTuple):
    """The answer of a server.

    Attributes:
        applications: All applications that it knows, itself included.
        by: The address at which it answered.
    """

    applications: list[Application]
    by: str


async def find_servers(url: str, within: timedelta = SERVER_TIMEOUT) -> FoundServers:
    """All applications that the server at a URL knows, itself included.

    Raises:
        UnreachableError: If it gives no answer in time, or an invalid one.
    """
    try:
        async with asyncio.timeout(within.total_seconds()):
            return await _ask(url)
    except TimeoutError as error:
        text = f"no answer within {within.total_seconds():g} seconds"
        raise UnreachableError(text) from error
    except Exception as error:  # the library reads untrusted bytes
        raise UnreachableError(_why(error)) from error


def _why(error: Exception) -> str:
    match error:
        case UaStatusCodeError():
            return f"it refuses ({type(error).__name__})"
        case socket.gaierror() | UnicodeError():
            return "its name has no address"
        case OSError() if error.errno:
            return os.strerror(error.errno).lower()
        case OSError():
            return str(error)
        case _:
            return f"its answer is invalid ({type(error).__name__})"


async def addresses_of(url: str) -> list[str]:
    """The addresses of the host of a URL; [] if it has none."""
    host, port = _address(url)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
            return await look_up(host, port)
    except (OSError, UnicodeError, TimeoutError):
        return []


async def is_served(url: str, addresses: Iterable[str]) -> bool:
    """Whether an OPC UA server answers at a URL, at one of these addresses of its host.

    False for anything else that listens there, too: the URL comes from the network, and the result
    must not tell an attacker which ports are open.
    """
    _, port = _address(url)
    for address in islice(addresses, MOST_ADDRESSES):
        try:
            async with (
                asyncio.timeout(CONNECT_TIMEOUT.total_seconds()),
                _connected(url, [address], port, LONGEST_GREETING) as (client, _),
            ):
                await client.send_hello()
                return True
        except UaStatusCodeError:  # an OPC UA server refuses this URL
            return True
        except Exception:  # noqa: BLE001 - the library reads untrusted bytes
            continue
    return False


async def _ask(url: str) -> FoundServers:
    host, port = _address(url)
    addresses = (await look_up(host, port))[:MOST_ADDRESSES]
    async with _connected(url, addresses, port, LONGEST_ANSWER) as (client, by):
        await client.send_hello()
        await client.open_secure_channel()
        servers = await client.find_servers()
        await client.close_secure_channel()
    return FoundServers([_application(description) for description in servers or ()], by)


@asynccontextmanager
async def _connected(
    url: str, addresses: list[str], port: int, longest: int
) -> AsyncIterator[tuple[Client, str]]:
    """A client of the server at a URL, and the address that it is connected to.

    Raises:
        OSError: If no server listens, or the connection ends; the text is a part of a sentence.
    """
    client = Client(url)
    make = partial(BoundedProtocol, longest, SERVER_TIMEOUT.total_seconds())
    protocol, by = await _listening(make, addresses, port)
    client.uaclient.protocol = protocol
    try:
        yield client, by
    except ConnectionError as error:
        if error.errno:
            raise
        raise ConnectionError(protocol.refusal or "it ended the connection") from error
    finally:
        protocol.end()


async def _listening(
    make: Callable[[], BoundedProtocol], addresses: list[str], port: int
) -> tuple[BoundedProtocol, str]:
    """A connection to the first of some addresses at which a server listens."""
    loop = asyncio.get_running_loop()
    *others, last = addresses
    for other in others:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                return (await loop.create_connection(make, other, port))[1], other
    return (await loop.create_connection(make, last, port))[1], last


def _address(url: str) -> tuple[str, int]:
    parts = split_url(url, SCHEME)
    assert parts
    return parts.hostname or "", parts.port or DEFAULT_PORT


def _application(description: ua.ApplicationDescription) -> Application:
    return Application(
        name=_text(description.ApplicationName.Text),
        is_server=description.ApplicationType == ua.ApplicationType.Server,
        is_both=description.ApplicationType == ua.ApplicationType.ClientAndServer,
        uri=_text(description.ApplicationUri),
        product_uri=_text(description.ProductUri),
        discovery_urls=tuple(_text(url) for url in description.DiscoveryUrls or ()),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
