"""How a server ends: nobody's call is lost in the closing. And what one client may take of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from starlette.types import Receive, Scope, Send

from kube import http_server
from kube.http_server import Bound, Ending, serving
from tests.asgi import healthy

FLOOD, OTHER = "127.0.0.2", "127.0.0.3"


async def test_a_kept_connection_is_told_to_end_before_it_is_closed() -> None:
    async with aiohttp.ClientSession() as session:
        context = serving(healthy, ("127.0.0.1", 0), ending=Ending(5, 30.0))
        bound = await context.__aenter__()
        url = f"http://{bound.host}:{bound.port}/"
        async with session.get(url) as first:
            pass
        ending = asyncio.create_task(context.__aexit__(None, None, None))
        await asyncio.sleep(0)
        async with session.get(url) as last:
            pass
        await asyncio.wait_for(ending, 10)

    assert "connection" not in first.headers
    assert (last.status, last.headers["connection"]) == (200, "close")


async def test_a_connection_that_is_idle_is_closed_when_the_time_is_over() -> None:
    async with serving(healthy, ("127.0.0.1", 0), ending=Ending(5, 0.1)) as bound:
        reader, writer = await asyncio.open_connection(bound.host, bound.port)
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()


@asynccontextmanager
async def connections(
    bound: Bound, source: str, number: int
) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """So many connections of one client."""
    opened = [
        await asyncio.open_connection(bound.host, bound.port, local_addr=(source, 0))
        for _ in range(number)
    ]
    try:
        yield opened
    finally:
        for _, writer in opened:
            writer.close()


async def status(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *headers: bytes
) -> bytes:
    """The first line of the answer; nothing where the connection was closed."""
    try:
        writer.writelines((b"GET / HTTP/1.1\r\nHost: localhost\r\n", *headers, b"\r\n"))
        return await reader.readline()
    except ConnectionError:
        return b""


async def test_who_holds_all_connections_keeps_no_other_client_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 4)
    served = serving(healthy, ("127.0.0.1", 0), ending=Ending(5, 0.0))
    async with served as bound, connections(bound, FLOOD, 8) as flood:
        async with asyncio.timeout(10):
            answers = [await status(*one) for one in flood]
            async with connections(bound, OTHER, 1) as (other,):
                assert await status(*other) == b"HTTP/1.1 200 OK\r\n"

    assert answers == [b"HTTP/1.1 200 OK\r\n"] * 4 + [b""] * 4


async def test_a_connection_that_is_closed_makes_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 1)
    async with (
        serving(healthy, ("127.0.0.1", 0), ending=Ending(5, 0.0)) as bound,
        asyncio.timeout(10),
    ):
        for _ in range(3):
            async with connections(bound, FLOOD, 1) as ((reader, writer),):
                line = await status(reader, writer, b"Connection: close\r\n")
                assert line == b"HTTP/1.1 200 OK\r\n"
                # The server says so once nothing of the connection is left.
                assert (await reader.read()).endswith(b"\r\n\r\n")


async def test_who_reads_nothing_of_an_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "STALL_SECONDS", 0.1)
    ended = asyncio.Event()

    async def endless(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(64):
            part = {"type": "http.response.body", "body": bytes(1 << 20), "more_body": True}
            await send(part)
        assert (await receive())["type"] == "http.disconnect"
        ended.set()

    async with (
        serving(endless, ("127.0.0.1", 0), ending=Ending(5, 0.0)) as bound,
        connections(bound, FLOOD, 1) as ((_, writer),),
        asyncio.timeout(10),
    ):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await ended.wait()
