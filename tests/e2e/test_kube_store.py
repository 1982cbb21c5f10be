"""A store follows the real API server through its death, its silence and lost history."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator

import pytest

from kube.backoff import Backoff
from kube.calls.api import ApiClient, GoneError, connect
from kube.kinds import CONFIG_MAPS
from kube.resources import Resource
from kube.stores.api import Store, WatchSettings
from local_cluster.api import Cluster
from tests.e2e.kube_world import (
    Writer,
    a_config_map,
    assert_equal_to_the_server,
    compact_etcd,
    following,
    new_namespace,
    writing,
)

pytestmark = pytest.mark.e2e

MANY = 10_000


@pytest.fixture
async def client(apiserver: Cluster) -> AsyncIterator[ApiClient]:
    async with connect(apiserver.kubeconfig) as connected:
        yield connected


@pytest.fixture
async def place(client: ApiClient) -> str:
    return await new_namespace(client)


def writers(client: ApiClient, namespace: str, count: int = 4) -> list[Writer]:
    return [Writer(client, namespace, f"w{n}", random.Random(n)) for n in range(count)]


async def test_nothing_is_lost_or_doubled_when_the_server_is_killed_under_a_watch(
    apiserver: Cluster, client: ApiClient, place: str
) -> None:
    part = apiserver.part("kube-apiserver")
    async with following(client, place) as (store, ledger):
        crew = writers(client, place)
        for writer in crew[:2]:
            writer.store = store
        async with writing(*crew):
            for _ in range(2):
                await asyncio.sleep(1.5)
                await asyncio.to_thread(part.kill)
                await asyncio.sleep(0.5)
                await asyncio.to_thread(part.start)
            await asyncio.sleep(1.5)

        await assert_equal_to_the_server(client, place, store, ledger)

    assert sum(writer.answered for writer in crew) > 50
    assert sum(writer.unanswered for writer in crew) > 0
    assert store.stats.failures > 0
    print(f"answered={sum(w.answered for w in crew)} told={len(ledger.told)} {store.stats}")  # noqa: T201


async def test_history_compacted_while_the_server_was_away_leads_to_a_new_list(
    apiserver: Cluster, client: ApiClient, place: str
) -> None:
    part = apiserver.part("kube-apiserver")
    await client.create(CONFIG_MAPS, a_config_map(place, "stays"))
    await client.create(CONFIG_MAPS, a_config_map(place, "goes"))
    # Patient enough to come back only when the writes below are done and forgotten.
    patience = [1.0]
    backoff = Backoff(first_seconds=10, cap_seconds=10)
    patient = WatchSettings(backoff=backoff, uniform=lambda: patience[0])
    async with following(client, place, patient) as (store, ledger):
        lists = store.stats.lists
        await asyncio.to_thread(part.restart)
        await client.delete(CONFIG_MAPS.at("goes", place))
        await client.create(CONFIG_MAPS, a_config_map(place, "came"))
        await asyncio.to_thread(compact_etcd, apiserver)
        await asyncio.to_thread(part.restart)
        patience[0] = 0.0
        async with asyncio.timeout(30):
            while store.stats.lists == lists:  # noqa: ASYNC110  There is nobody to wake this.
                await asyncio.sleep(0.05)

        await assert_equal_to_the_server(client, place, store, ledger)

        assert store.stats.last_failure.startswith("410")
        assert {view.name for view in store} == {"stays", "came"}


async def test_watch_from_a_compacted_version_is_gone(
    apiserver: Cluster, client: ApiClient, place: str
) -> None:
    version = await client.current_version(CONFIG_MAPS.select(place))
    await client.create(CONFIG_MAPS, a_config_map(place, "a"))
    await asyncio.to_thread(compact_etcd, apiserver)
    await asyncio.to_thread(apiserver.part("kube-apiserver").restart)

    with pytest.raises(GoneError):
        async with client.watch(
            CONFIG_MAPS.select(place), version, seconds=5, idle_seconds=10
        ) as frames:
            raise getattr(await anext(frames), "error")  # noqa: B009


async def test_list_continued_after_compaction_is_gone(
    apiserver: Cluster, client: ApiClient, place: str
) -> None:
    for number in range(4):
        await client.create(CONFIG_MAPS, a_config_map(place, f"m{number}"))
    pages = client.pages(CONFIG_MAPS.select(place), page_size=2)
    await anext(pages)
    await client.create(CONFIG_MAPS, a_config_map(place, "later"))
    await asyncio.to_thread(compact_etcd, apiserver)
    await asyncio.to_thread(apiserver.part("kube-apiserver").restart)

    with pytest.raises(GoneError):
        await anext(pages)


async def test_silent_server_is_noticed_and_caught_up_with_when_it_speaks_again(
    apiserver: Cluster, client: ApiClient, place: str
) -> None:
    part = apiserver.part("kube-apiserver")
    settings = WatchSettings(backoff=Backoff(first_seconds=0.1, cap_seconds=0.5), idle_seconds=1.0)
    async with following(client, place, settings) as (store, ledger):
        await asyncio.to_thread(part.stop)
        try:
            async with asyncio.timeout(20):
                while not store.stats.failures:  # noqa: ASYNC110  There is nobody to wake this.
                    await asyncio.sleep(0.05)
        finally:
            await asyncio.to_thread(part.cont)
        await client.create(CONFIG_MAPS, a_config_map(place, "after"))

        await assert_equal_to_the_server(client, place, store, ledger)


async def test_ten_thousand_objects_are_listed_in_pages_and_followed(
    client: ApiClient, place: str
) -> None:
    gate = asyncio.Semaphore(32)

    async def create(number: int) -> None:
        async with gate:
            await client.create(CONFIG_MAPS, a_config_map(place, f"m{number}"))

    async with asyncio.TaskGroup() as group:
        for number in range(MANY):
            group.create_task(create(number))
    began = time.monotonic()

    async with following(client, place, WatchSettings(page_size=500)) as (store, ledger):
        took = time.monotonic() - began
        assert len(store) >= MANY
        async with writing(*writers(client, place)):
            await asyncio.sleep(2)
        await client.delete(CONFIG_MAPS.at("m77", place))
        store.note(await client.merge_patch(CONFIG_MAPS.at("m78", place), {"data": {"value": "x"}}))

        await assert_equal_to_the_server(client, place, store, ledger)

    assert store.get("m77", place) is None
    print(f"{MANY} listed in {took:.2f} s; {store.stats}")  # noqa: T201


async def test_quiet_resource_is_as_new_as_now_within_a_few_seconds(
    client: ApiClient, place: str
) -> None:
    """Nothing of the followed namespace changes, so only a bookmark can move its store."""
    async with following(client, place) as (store, _):
        await client.create(CONFIG_MAPS, a_config_map("default", place))
        began = time.monotonic()

        assert await store.catch_up(10)

        assert time.monotonic() - began < 5


async def test_resource_that_is_not_served_is_waited_for(client: ApiClient) -> None:
    unknown = Resource("moorage.dev", "v0", "nothings")
    store = Store(client, unknown.select(), lambda obj: obj["metadata"]["name"])
    task = asyncio.create_task(store.run())

    async with asyncio.timeout(30):
        while not store.stats.failures:  # noqa: ASYNC110  There is nobody to wake this.
            await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not store.synced.is_set()
    assert store.stats.last_failure.startswith("404")
