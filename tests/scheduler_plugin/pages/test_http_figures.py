"""Figures over real sockets: made once for all who ask, and kept for some seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from fastapi import FastAPI, Request, Response

from kube.http_server import Bound
from scheduler_plugin.extender.http_server import serving
from scheduler_plugin.extender.listening import Listening
from scheduler_plugin.pages import http_figures
from scheduler_plugin.pages.http_figures import KEPT_SECONDS, FiguresPage


class Maker:
    """Makes pages when a test lets it, and counts them."""

    def __init__(self) -> None:
        self.now = 100.0
        self.made = 0
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.begun = asyncio.Event()
        self.failure: Exception | None = None
        self.size = 0

    async def page(self) -> bytes:
        self.made += 1
        self.begun.set()
        await self.may_end.wait()
        if self.failure:
            raise self.failure
        return f"page {self.made}".encode() + bytes(self.size)


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as found:
        yield found


@asynccontextmanager
async def pages(maker: Maker) -> AsyncIterator[str]:
    """Where the page is."""
    async with bound_pages(maker) as bound:
        yield f"http://127.0.0.1:{bound.port}/metrics"


@asynccontextmanager
async def bound_pages(maker: Maker) -> AsyncIterator[Bound]:
    figures, app = FiguresPage(maker.page, lambda: maker.now), FastAPI()

    @app.get("/metrics")
    async def metrics(request: Request) -> Response:
        return figures.answer(request)

    async with serving(app, Listening(host="127.0.0.1", port=0, tls=None)) as bound:
        yield bound


async def text(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as answer:
        return await answer.text()


async def test_many_who_ask_at_one_time_get_one_page(
    maker: Maker, session: aiohttp.ClientSession
) -> None:
    maker.may_end.clear()
    async with pages(maker) as url:
        asked = [asyncio.create_task(text(session, url)) for _ in range(50)]
        await maker.begun.wait()
        maker.may_end.set()

        assert await asyncio.gather(*asked) == ["page 1"] * 50


async def test_a_page_is_kept_for_some_seconds(
    maker: Maker, session: aiohttp.ClientSession
) -> None:
    async with pages(maker) as url:
        first = [await text(session, url) for _ in range(3)]
        maker.now += KEPT_SECONDS
        second = [await text(session, url) for _ in range(3)]

    assert (first, second) == (["page 1"] * 3, ["page 2"] * 3)


async def test_who_leaves_takes_the_page_from_nobody(
    maker: Maker, session: aiohttp.ClientSession
) -> None:
    maker.may_end.clear()
    async with pages(maker) as url:
        terminating = asyncio.create_task(text(session, url))
        await maker.begun.wait()
        staying = asyncio.create_task(text(session, url))
        terminating.cancel()
        await asyncio.wait([terminating])
        maker.may_end.set()

        assert await staying == "page 1"


async def test_a_page_that_failed_is_made_anew(
    maker: Maker, session: aiohttp.ClientSession
) -> None:
    maker.failure = RuntimeError("a fault")
    async with pages(maker) as url:
        async with session.get(url) as answer:
            assert answer.status == 500
        maker.failure = None

        assert await text(session, url) == "page 2"


async def test_a_large_page_comes_whole(maker: Maker, session: aiohttp.ClientSession) -> None:
    maker.size = 3 * http_figures.PIECE_BYTES + 1
    async with pages(maker) as url, session.get(url) as answer:
        page = await answer.read()

    assert page == b"page 1" + bytes(maker.size)
    assert answer.headers["Content-Length"] == str(len(page))
    assert answer.headers["Content-Type"].startswith("text/plain; version=")


@asynccontextmanager
async def slow_readers(
    bound: Bound, number: int
) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Connections of one client that ask and read nothing."""
    slow = [
        await asyncio.open_connection("127.0.0.1", bound.port, local_addr=("127.0.0.2", 0))
        for _ in range(number)
    ]
    for _, writer in slow:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try:
        yield slow
    finally:
        for _, writer in slow:
            writer.close()


async def test_who_reads_slowly_keeps_nobody_waiting(
    maker: Maker, session: aiohttp.ClientSession
) -> None:
    maker.size = 16 << 20
    async with bound_pages(maker) as bound, slow_readers(bound, http_figures.AT_ONCE):
        await maker.begun.wait()
        page = await text(session, f"http://127.0.0.1:{bound.port}/metrics")

    assert page.startswith("page 1")
    assert len(page) > maker.size


async def test_who_does_not_read_in_time_is_cut_off(
    maker: Maker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_figures, "SEND_SECONDS", 0.1)
    maker.size = 16 << 20
    async with (
        bound_pages(maker) as bound,
        slow_readers(bound, 1) as ((reader, writer),),
        asyncio.timeout(60),
    ):
        while "did not read the metrics" not in caplog.text:  # noqa: ASYNC110  Only the log says so.
            await asyncio.sleep(0.01)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(maker.size)
