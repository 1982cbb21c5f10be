"""The opcua handler and servers that are gone, silent or hostile (others: `in_networks`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

import pytest

from driver.discovery import opcua
from driver.discovery.filters import Filter
from driver.discovery.opcua import OpcuaHandler
from driver.discovery.opcua_applications import Application
from driver.discovery.opcua_details import OpcuaDetails
from driver.discovery.opcua_servers import LONGEST_ANSWER, UnreachableError, find_servers

SOON = timedelta(milliseconds=1)
ACKNOWLEDGE = b"ACKF" + bytes([28, 0, 0, 0]) + bytes(4) + b"\xff\xff\0\0" * 2 + bytes(8)


@asynccontextmanager
async def fake_server(answer: bytes) -> AsyncIterator[str]:
    """A server that answers whatever it is told with the same bytes, and then with nothing."""
    served: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.current_task())
        try:
            while await reader.read(65536):
                writer.write(answer)
                await writer.drain()
        except ConnectionError:
            pass
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"opc.tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await asyncio.gather(*(task for task in served if task))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "no answer within 0.2 seconds"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "."),
        (b"ERRF" + bytes([16, 0, 0, 0]) + b"\0\0\x7d\x80" + b"\xff" * 4, "."),
        (ACKNOWLEDGE, "."),
        (b"MSGF\xff\xff\xff\x7f" + bytes(2 * LONGEST_ANSWER), "it ended the connection"),
    ],
)
async def test_a_bad_server_is_unreachable(answer: bytes, why: str) -> None:
    async with fake_server(answer) as url, asyncio.timeout(30):
        with pytest.raises(UnreachableError, match=why):
            await find_servers(url, timedelta(seconds=0.2))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("opc.tcp://127.0.0.1:1/", "connection refused"),
        ("opc.tcp://no.such.host.invalid:1/", "its name has no address"),
    ],
)
async def test_why_nobody_answers(url: str, why: str) -> None:
    with pytest.raises(UnreachableError, match=why):
        await find_servers(url)


async def test_what_is_not_a_device_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name without an address is looked for where it was told of; nobody listens on port 1."""
    gone = Application("Gone", is_server=True, discovery_urls=("opc.tcp://x.invalid:1/",))
    web = Application("Web", is_server=True, discovery_urls=("https://x/",))

    async def find(url: str) -> list[Application]:
        return [gone, web, Application("No", is_server=True)]

    monkeypatch.setattr(opcua, "find_servers", find)
    details = OpcuaDetails(("opc.tcp://127.0.0.1:1/",), Filter(("No",), include=False))
    handler = OpcuaHandler(SOON)
    async with asyncio.timeout(30), aclosing(handler.discover(details)) as answers:
        assert await anext(answers) == ()
        assert handler.problem == (
            '"Gone" at "opc.tcp://127.0.0.1:1/": nobody listens there. '
            '"Web" of "opc.tcp://127.0.0.1:1/": it has no URL of OPC UA over TCP.'
        )
    assert handler.problem is None
