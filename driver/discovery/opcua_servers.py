"""OPC UA servers on the network, asked with asyncua which servers they know of.

A server may be slow, gone, or hostile: whatever it does costs it its own place in the list, after
`SERVER_TIMEOUT` at the latest, and no more than `LONGEST_ANSWER` bytes are read from it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress
from datetime import timedelta

from asyncua import ua
from asyncua.client.client import Client

from driver.discovery.name_servers import look_up
from driver.discovery.opcua_applications import Application
from driver.discovery.opcua_details import split_url

SERVER_TIMEOUT = timedelta(seconds=5)
CONNECT_TIMEOUT = timedelta(seconds=3)
"""As Akri's."""

LONGEST_ANSWER = 512 * 1024
"""Bytes; a few thousand servers. The library takes up to half a second to read as much."""

DEFAULT_PORT = 4840
MOST_ADDRESSES = 3
"""Of one name, which are tried one after another."""

logging.getLogger("asyncua").setLevel(logging.CRITICAL)  # reasons are ours to tell


class UnreachableError(Exception):
    """Raised when a server does not answer as it should; the text goes into a sentence."""


async def find_servers(url: str, within: timedelta = SERVER_TIMEOUT) -> list[Application]:
    """All applications that the server at a URL knows of, itself included.

    Raises:
        UnreachableError: If it does not tell in time, or in a way that makes sense.
    """
    try:
        async with asyncio.timeout(within.total_seconds()):
            return [_application(told) for told in await _ask(url, within)]
    except TimeoutError as error:
        text = f"no answer within {within.total_seconds():g} seconds"
        raise UnreachableError(text) from error
    except socket.gaierror as error:
        raise UnreachableError("its name has no address") from error
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else "it ended the connection"
        raise UnreachableError(why) from error
    except Exception as error:  # the library reads foreign bytes
        raise UnreachableError(f"its answer makes no sense ({type(error).__name__})") from error


async def is_listening(url: str) -> bool | None:
    """Whether somebody listens at a URL; None if its host has no address."""
    parts = split_url(url)
    assert parts
    port = parts.port or DEFAULT_PORT
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
            found = await look_up(parts.hostname or "", port)
    except (OSError, UnicodeError, TimeoutError):
        return None
    return await _is_listening([one.address for one in found[:MOST_ADDRESSES]], port)


async def _is_listening(addresses: list[str], port: int) -> bool:
    for address in addresses:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                _, writer = await asyncio.open_connection(address, port)
            writer.transport.abort()
            return True
    return False


class _Limited(asyncio.Protocol):
    """Lets so many bytes pass to another protocol, and then ends the connection."""

    def __init__(self, protocol: asyncio.Protocol, transport: asyncio.Transport) -> None:
        self._protocol = protocol
        self._transport = transport
        self._left = LONGEST_ANSWER

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._transport.abort()
        else:
            self._protocol.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)


async def _ask(url: str, within: timedelta) -> list[ua.ApplicationDescription]:
    client = Client(url, timeout=within.total_seconds())
    await client.connect_socket()
    try:
        _limit(client)
        await client.send_hello()
        await client.open_secure_channel()
        found = await client.find_servers()
        await client.close_secure_channel()
    finally:
        client.disconnect_socket()
    return found or []


def _limit(client: Client) -> None:
    protocol = client.uaclient.protocol
    if protocol is not None and protocol.transport is not None:
        protocol.transport.set_protocol(_Limited(protocol, protocol.transport))


def _application(told: ua.ApplicationDescription) -> Application:
    return Application(
        name=_text(told.ApplicationName.Text),
        is_server=told.ApplicationType == ua.ApplicationType.Server,
        uri=_text(told.ApplicationUri),
        product_uri=_text(told.ProductUri),
        discovery_urls=tuple(_text(url) for url in told.DiscoveryUrls or ()),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
