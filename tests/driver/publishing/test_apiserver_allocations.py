"""What claims have, as the watch of claims tells it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from driver.api import DRIVER_NAME, DeviceName
from driver.publishing import apiserver_allocations as apiserver_claims
from driver.publishing.apiserver_allocations import AllocationWatch
from kube.calls.api import ApiClient, connect
from kube.kinds import PODS
from kube.objects import JsonObject
from tests.fakes.scripted_apiserver import FakeScript, hangs, lists, scripted
from tests.kube.builders import an_object

POOL = "node-a"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver_claims, "GATHER_SECONDS", 0.0)


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeScript]:
    async with scripted(tmp_path) as fake:
        yield fake


@pytest.fixture
async def client(fake: FakeScript) -> AsyncIterator[ApiClient]:
    async with connect(fake.kubeconfig) as client:
        yield client


def a_claim(version: int, device: str) -> JsonObject:
    result = {"driver": DRIVER_NAME, "pool": POOL, "device": device}
    allocation = {"devices": {"results": [result]}}
    return {**an_object("claim", version), "status": {"allocation": allocation}}


@asynccontextmanager
async def turned_on(client: ApiClient) -> AsyncIterator[tuple[AllocationWatch, asyncio.Event]]:
    """A watch that has told what claims have, and what it sets when that changes."""
    changed = asyncio.Event()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        watch = AllocationWatch(client, [POOL].__contains__, tasks, changed.set)
        watch.turn_on()
        await changed.wait()
        yield watch, changed
        watch.turn_off()


async def test_what_a_claim_got_is_known_before_the_watch_brings_it(
    client: ApiClient, fake: FakeScript
) -> None:
    """The watch is silent: a claim of version 8 was written while the device was not tainted."""
    fake.will(lists(version=5), hangs, lists(version=9), lists(a_claim(8, "loop-1"), version=9))
    changed = asyncio.Event()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        watch = AllocationWatch(client, [POOL].__contains__, tasks, changed.set)
        watch.renew()
        await changed.wait()
        assert watch.allocated_in(POOL) == frozenset()

        changed.clear()
        watch.renew()
        assert watch.allocated_in(POOL) is None
        while watch.allocated_in(POOL) is None:
            await changed.wait()
            changed.clear()

        assert watch.allocated_in(POOL) == frozenset({DeviceName("loop-1")})
        watch.turn_off()


async def test_what_claims_got_is_asked_once_for_many_taints(
    client: ApiClient, fake: FakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_claims, "GATHER_SECONDS", 0.05)
    fake.will(lists(version=5), hangs, lists(version=5))
    async with turned_on(client) as (watch, changed):
        changed.clear()
        for _ in range(20):
            watch.renew()
            await asyncio.sleep(0)
        await changed.wait()

        assert watch.allocated_in(POOL) == frozenset()
        assert len(fake.seen) == 3


async def test_who_is_one_of_many_asks_at_a_time_of_his_own(
    client: ApiClient, fake: FakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda _, most: most)
    fake.will(*[lists(version=5)] * 4)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        watch = AllocationWatch(
            client, [POOL].__contains__, tasks, lambda: None, spread_seconds=3600.0
        )
        for _ in range(2):
            watch.renew()
            await client.list(PODS.select())
            assert watch.allocated_in(POOL) is None

        watch.turn_off()  # the devices are back before it was to ask
        await client.list(PODS.select())

    assert len(fake.seen) == 3, "of pods alone"


async def test_taints_that_go_on_do_not_keep_it_from_asking(
    client: ApiClient, fake: FakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_claims, "GATHER_SECONDS", 0.2)
    fake.will(lists(version=5), hangs, lists(version=5))
    async with turned_on(client) as (watch, _):
        while len(fake.seen) < 3:
            watch.renew()
            await asyncio.sleep(0.01)


async def test_it_may_be_turned_off_while_it_asks(client: ApiClient, fake: FakeScript) -> None:
    fake.will(lists(version=5), hangs, hangs, lists(version=12), hangs)
    async with turned_on(client) as (watch, changed):
        watch.renew()
        await fake.has_seen(3)
        watch.turn_off()
        assert watch.allocated_in(POOL) is None

        changed.clear()
        watch.turn_on()
        await changed.wait()
        assert watch.allocated_in(POOL) == frozenset()
