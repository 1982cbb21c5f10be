"""How a server ends: nobody's call is lost in the closing."""

from __future__ import annotations

import asyncio

import aiohttp
from starlette.types import Receive, Scope, Send

from kube.http_server import Ending, serving


async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body"})


async def test_a_kept_connection_is_told_to_end_before_it_is_closed() -> None:
    async with aiohttp.ClientSession() as session:
        context = serving(answer, ("127.0.0.1", 0), ending=Ending(5, 30.0))
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
    async with serving(answer, ("127.0.0.1", 0), ending=Ending(5, 0.1)) as bound:
        reader, writer = await asyncio.open_connection(bound.host, bound.port)
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()
