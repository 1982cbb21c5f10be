"""A connection that is ready for whoever asks next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from aiohttp import connector

from kube.calls import apiserver_warm
from kube.calls.api import ApiClient, keep_warm
from kube.kinds import NODES
from tests.fakes.scripted_apiserver import (
    KEEPALIVE_SECONDS,
    FakeScript,
    refuses,
    resets,
    says,
)

NODE = NODES.at("n")
VERSION = says({"gitVersion": "v1.36.3"})


class Clock:
    """The time of client and server: it passes while nothing else is to be done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        self._rests = 0
        self._over = asyncio.Event()
        monkeypatch.setattr(asyncio.get_running_loop(), "time", self)
        monkeypatch.setattr(connector, "monotonic", self)
        monkeypatch.setattr(apiserver_warm, "asyncio", SimpleNamespace(sleep=self._rest))

    def __call__(self) -> float:
        return time.monotonic() + self.ahead

    async def passes(self, seconds: float) -> None:
        """What is due by then is done."""
        self.ahead += seconds
        for _ in range(10):
            await asyncio.sleep(0)

    async def _rest(self, seconds: float) -> None:
        if not self._rests:
            self._over.set()
            await asyncio.Event().wait()
        self._rests -= 1
        await self.passes(seconds)

    @asynccontextmanager
    async def warm(
        self, client: ApiClient, rests: int, on_version: Callable[[str], None] = lambda _: None
    ) -> AsyncIterator[None]:
        """Keep a connection warm while nobody asks, for so many rests."""
        self._rests = rests
        task = asyncio.create_task(keep_warm(client, on_version))
        try:
            async with asyncio.timeout(rests * KEEPALIVE_SECONDS):
                await self._over.wait()
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_after_ten_rests_the_same_connection_is_used(
    fake: FakeScript, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    fake.will(says({}), *[VERSION] * 10, says({}))

    await client.get(NODE)
    async with clock.warm(client, 10):
        await client.get(NODE)

    assert clock.ahead > 4 * KEEPALIVE_SECONDS
    assert [seen.path for seen in fake.seen[1:-1]] == ["/version"] * 10
    assert len({seen.connection for seen in fake.seen}) == 1


async def test_each_version_is_heard_and_no_answer_that_has_none(
    fake: FakeScript, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, heard = Clock(monkeypatch), list[str]()
    fake.will(VERSION, refuses(403), says({"gitVersion": "v1.37.2"}), says({}))

    async with clock.warm(client, 3, heard.append):
        await client.get(NODE)

    assert heard == ["v1.36.3", "v1.37.2"]


async def test_of_several_connections_one_is_left_after_a_rest(
    fake: FakeScript, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    fake.will(*[says({})] * 8, *[VERSION] * 10, says({}))

    await asyncio.gather(*(client.get(NODE) for _ in range(8)))
    async with clock.warm(client, 10):
        await client.get(NODE)

    assert len({seen.connection for seen in fake.seen[:8]}) == 8
    assert len({seen.connection for seen in fake.seen[-5:]}) == 1


async def test_a_connection_that_nobody_keeps_warm_ends(
    fake: FakeScript, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    fake.will(says({}), says({}))

    await client.get(NODE)
    await clock.passes(KEEPALIVE_SECONDS + 1)
    await client.get(NODE)

    assert len({seen.connection for seen in fake.seen}) == 2


async def test_one_that_died_is_replaced_by_one_that_stays(
    fake: FakeScript, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    fake.will(says({}), resets, VERSION, refuses(403), VERSION, says({}))

    await client.get(NODE)
    async with clock.warm(client, 3):
        await client.get(NODE)

    first, dead, *others = (seen.connection for seen in fake.seen)
    assert first is dead
    assert len(set(others)) == 1
    assert first not in others


async def test_a_read_on_one_that_died_is_made_on_another(
    fake: FakeScript, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    fake.will(says({}), VERSION, resets, says({"kind": "Node"}))

    await client.get(NODE)
    async with clock.warm(client, 1):
        assert await client.get(NODE) == {"kind": "Node"}

    *_, dead, last = (seen.connection for seen in fake.seen)
    assert dead is not last


async def test_a_server_that_is_away_is_asked_again(
    fake: FakeScript, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    fake.will(says({}), resets, resets, VERSION, says({}))

    await client.get(NODE)
    async with clock.warm(client, 2):
        await client.get(NODE)

    assert fake.seen[-1].connection is fake.seen[-2].connection
