"""What one client may take of the webhook, over real sockets: others are answered all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from fastapi import FastAPI

from kube.http_server import Bound, Ending, serving
from tests.webhook.builders import a_review_body
from tests.webhook.test_http_app import Allowing
from webhook import http_limits
from webhook.http_app import http_app
from webhook.lookups import CLIENT
from webhook.reviews import Answer, Review

STRANGER, API_SERVER = "127.0.0.2", "127.0.0.3"
BODY = a_review_body("Queue", {})


class Telling(Allowing):
    """Tells whose request it answers, and waits where a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def validate(self, review: Review) -> Answer:
        self.clients.append(CLIENT.get())
        if CLIENT.get() == STRANGER:
            await self.may_answer.wait()
        return await super().validate(review)


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[Bound]:
    async with serving(app, ("127.0.0.1", 0), ending=Ending(5, 0.0)) as bound:
        yield bound


@asynccontextmanager
async def calling(bound: Bound, source: str) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(local_addr=(source, 0))
    base = f"http://{bound.host}:{bound.port}"
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(base, connector=connector, headers=headers) as session:
        yield session


async def status(session: aiohttp.ClientSession, body: bytes = BODY) -> int:
    async with session.post("/validate", data=body) as answer:
        return answer.status


async def test_whose_request_it_is_says_the_connection_and_not_the_request() -> None:
    admission = Telling()
    async with (
        served(http_app(admission)) as bound,
        calling(bound, STRANGER) as stranger,
        calling(bound, API_SERVER) as api_server,
    ):
        await status(stranger)
        headers = {"X-Forwarded-For": API_SERVER, "Forwarded": f"for={API_SERVER}"}
        async with stranger.post("/validate", data=BODY, headers=headers) as answer:
            assert answer.status == 200
        await status(api_server)

    assert admission.clients == [STRANGER, STRANGER, API_SERVER]


async def test_bodies_of_one_client_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_limits, "MOST_BODY_BYTES", 3 * len(BODY))
    admission = Telling()
    admission.may_answer.clear()
    async with (
        served(http_app(admission)) as bound,
        calling(bound, STRANGER) as stranger,
        calling(bound, API_SERVER) as api_server,
    ):
        flood = [asyncio.create_task(status(stranger)) for _ in range(20)]
        done, under_way = set[asyncio.Task[int]](), set(flood)
        while len(done) < 17:
            some, under_way = await asyncio.wait(
                under_way, timeout=10, return_when=asyncio.FIRST_COMPLETED
            )
            assert some
            done |= some

        assert await status(api_server) == 200
        admission.may_answer.set()
        answers = await asyncio.gather(*flood)
        assert sorted(answers) == [200] * 3 + [429] * 17
        assert await status(stranger) == 200
