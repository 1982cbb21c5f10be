"""Reads of what no store has: how many, for whom, and how often the same."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from kube.calls.api import NotFoundError, UnavailableError
from kube.kinds import CLAIMS
from kube.resources import ObjectPath
from tests.left_overs import kept_in
from webhook import lookups
from webhook.lookups import CLIENT, BusyError, Lookups


class FakeLookups:
    """An API server that answers when a test lets it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lookups = Lookups(lambda: self.now)
        self.there: set[str] = set()
        self.known: set[str] = set()
        self.reads: Counter[str] = Counter()
        self.under_way = 0
        self.most_under_way = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.is_away = False

    async def find(self, name: str, namespace: str = "tenant", client: str = "api") -> str | None:
        async def read() -> None:
            await self._read(name)

        CLIENT.set(client)
        path = CLAIMS.at(name, namespace)
        return await self.lookups.find(path, namespace, lambda: self._known(path), read)

    def _known(self, path: ObjectPath) -> str | None:
        return path.name if path.name in self.known else None

    async def _read(self, name: str) -> None:
        self.reads[name] += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.may_answer.wait()
        finally:
            self.under_way -= 1
        if self.is_away:
            raise UnavailableError("the API server is away")
        if name not in self.there:
            raise NotFoundError(name)
        self.known.add(name)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeLookups:
    monkeypatch.setattr(lookups, "MOST_AT_ONCE", 4)
    monkeypatch.setattr(lookups, "MOST_OF_CLIENT", 2)
    monkeypatch.setattr(lookups, "MOST_OF_ONE", 3)
    return FakeLookups()


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_is_known_is_not_read(server: FakeLookups) -> None:
    server.known.add("a")

    assert await server.find("a") == "a"
    assert not server.reads


async def test_what_is_not_known_is_read(server: FakeLookups) -> None:
    server.there.add("a")

    assert await server.find("a") == "a"
    assert await server.find("a") == "a"
    assert server.reads == {"a": 1}


async def test_what_is_absent_is_read_once_in_a_moment(server: FakeLookups) -> None:
    assert [await server.find("a") for _ in range(5)] == [None] * 5
    assert server.reads == {"a": 1}

    server.now = 1.0
    assert await server.find("a") is None
    assert server.reads == {"a": 2}


async def test_what_was_absent_is_found_as_soon_as_the_watch_tells_of_it(
    server: FakeLookups,
) -> None:
    assert await server.find("a") is None

    server.known.add("a")

    assert await server.find("a") == "a"


@pytest.mark.parametrize("there", [True, False])
async def test_many_who_ask_for_one_name_at_once_read_it_once(
    server: FakeLookups, there: bool
) -> None:
    """A Job's pods, for example, that all name one claim."""
    server.there = {"a"} if there else set()
    server.may_answer.clear()
    asked = [asyncio.create_task(server.find("a")) for _ in range(50)]
    await turns()
    server.may_answer.set()

    assert await asyncio.gather(*asked) == ["a" if there else None] * 50
    assert server.reads == {"a": 1}


async def test_whoever_asks_for_too_many_names_is_told_and_others_are_answered(
    server: FakeLookups,
) -> None:
    server.may_answer.clear()
    flood = [asyncio.create_task(server.find(f"a{number}")) for number in range(3)]
    await turns()

    with pytest.raises(BusyError, match='Namespace "tenant" refers to more than'):
        async with asyncio.timeout(5):
            await server.find("a3")
    other = asyncio.create_task(server.find("b", "other"))
    await turns()
    server.may_answer.set()

    assert await asyncio.gather(*flood, other) == [None] * 4
    assert server.most_under_way == 2
    assert await server.find("a3") is None


async def test_a_stranger_who_names_many_namespaces_keeps_the_api_server_waiting_for_none(
    server: FakeLookups,
) -> None:
    server.may_answer.clear()
    flood = [
        asyncio.create_task(server.find(f"a{number}", f"made-up-{number}", "stranger"))
        for number in range(100)
    ]
    await turns()
    asked = asyncio.create_task(server.find("b", "tenant"))
    await turns()

    assert server.reads["b"] == 1
    assert server.under_way == 3
    server.may_answer.set()
    assert await asyncio.gather(*flood, asked) == [None] * 101


async def test_what_a_stranger_asks_in_the_name_of_a_namespace_is_not_charged_to_it(
    server: FakeLookups,
) -> None:
    server.may_answer.clear()
    flood = [
        asyncio.create_task(server.find(f"a{number}", "tenant", "stranger")) for number in range(3)
    ]
    await turns()
    asked = asyncio.create_task(server.find("b", "tenant"))
    same = asyncio.create_task(server.find("a2", "tenant"))
    await turns()
    server.may_answer.set()

    assert await asyncio.gather(*flood, asked, same) == [None] * 5


async def test_whoever_gives_up_leaves_his_place(server: FakeLookups) -> None:
    server.may_answer.clear()
    for _ in range(5):
        flood = [asyncio.create_task(server.find(f"a{number}")) for number in range(3)]
        await turns()
        for task in flood:
            task.cancel()
        await asyncio.wait(flood)
    server.may_answer.set()

    assert await server.find("b") is None
    assert kept_in(server.lookups) == {}


async def test_a_failure_says_nothing_about_the_name(server: FakeLookups) -> None:
    server.is_away = True
    with pytest.raises(UnavailableError):
        await server.find("a")
    server.is_away, server.there = False, {"a"}

    assert await server.find("a") == "a"
