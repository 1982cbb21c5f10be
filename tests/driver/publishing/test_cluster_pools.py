"""Shared pools beside one another: one device of one, and many of another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from driver.api import NODE_LABEL, OFFERED_THROUGH, ConfigurationName
from driver.configurations.configurations import Verdict
from driver.instances.cluster_instances import BY_CONFIGURATION
from driver.instances.slots.lost_nodes import node_state
from driver.instances.unseen_instances import observed_instance
from driver.publishing import cluster_pools
from driver.publishing.cluster_pools import ClusterPools, SharedInputs, SharedOffer
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication
from driver.publishing.desired.slices import Features
from kube.calls.api import ApiClient
from kube.kinds import INSTANCES, NODES
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource
from kube.stores.api import Store
from tests.driver.builders import NOW
from tests.driver.instances.test_inventory import a_verdict
from tests.fakes.slices import FakeSliceServer

FEATURES = Features(consumable_capacity=True, taints=True)
MANY = 300


class BusyServer(FakeSliceServer):
    """Answers no write of the pool with many devices before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()
        self.wrote = asyncio.Event()

    async def create(self, resource: Resource, body: JsonObject) -> JsonObject:
        if body["spec"]["pool"]["name"] == "shared/many":
            await self.may_answer.wait()
        self.wrote.set()
        return await super().create(resource, body)

    async def replace(self, path: ObjectPath, body: JsonObject) -> JsonObject:
        self.wrote.set()
        return await super().replace(path, body)

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not true():
                self.wrote.clear()
                await self.wrote.wait()

    def shown(self) -> set[str]:
        return {pool for pool, _ in self.devices()}


class World:
    """Two Configurations, and Instances of both that a node sees."""

    def __init__(self) -> None:
        self.server = BusyServer()
        client = cast("ApiClient", self.server)
        self.instances = Store(
            client,
            INSTANCES.select(),
            observed_instance,
            indexes={BY_CONFIGURATION: lambda observed: (observed.slots.configuration,)},
        )
        self.nodes = Store(client, NODES.select(), node_state)
        labels = {"kubernetes.io/hostname": "host-a"}
        times = {"uid": "uid", "resourceVersion": "1", "creationTimestamp": NOW.isoformat()}
        self.nodes.note({"metadata": {"name": "node-a", "labels": labels, **times}})
        self.version = 1

    def held(self) -> Mapping[ConfigurationName, Verdict]:
        return {ConfigurationName(name): a_verdict(name) for name in ("many", "one")}

    def put(self, configuration: str, number: int, **properties: str) -> None:
        self.version += 1
        name = f"{configuration}-{number:06x}"
        self.instances.note(
            {
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "uid": name,
                    "resourceVersion": str(self.version),
                    "creationTimestamp": NOW.isoformat(),
                    "labels": {NODE_LABEL: ""},
                    "annotations": {OFFERED_THROUGH: "dra"},
                },
                "spec": {
                    "configurationName": configuration,
                    "capacity": 1,
                    "nodes": ["node-a"],
                    "brokerProperties": properties,
                },
            }
        )

    @asynccontextmanager
    async def published(self) -> AsyncIterator[ClusterPools]:
        """Publish as long as the block lasts."""
        async with asyncio.TaskGroup() as tasks:
            world = SharedInputs(self.held, self.instances, self.nodes)
            offer = SharedOffer(FEATURES, is_dra=True)
            pools = ClusterPools(cast("ApiClient", self.server), offer, world, tasks, lambda: None)
            pools.start()
            pools.follow()
            try:
                yield pools
            finally:
                for task in asyncio.all_tasks():
                    if task.get_name() == "publish shared pools":
                        task.cancel()

    async def until_shown(self, *pools: str) -> None:
        await self.server.until(lambda: self.server.shown() == set(pools))


async def test_a_pool_does_not_wait_for_the_writes_of_another() -> None:
    world = World()
    for number in range(MANY):
        world.put("many", number)
    world.put("one", 0)
    async with world.published():
        await world.until_shown("shared/one")

        world.server.may_answer.set()
        await world.until_shown("shared/many", "shared/one")


async def test_only_the_pool_of_a_device_that_changes_is_decided_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, looked_at = World(), list[int]()

    async def worked_out(many: int, function: Any, *values: Any) -> Any:
        looked_at.append(many)
        return function(*values)

    monkeypatch.setattr(cluster_pools, "in_thread_if_many", worked_out)
    world.server.may_answer.set()
    for number in range(MANY):
        world.put("many", number)
    world.put("one", 0)
    async with world.published():
        await world.until_shown("shared/many", "shared/one")
        looked_at.clear()
        writes = world.server.writes
        world.put("one", 0, ROOM="first")
        await world.server.until(lambda: world.server.writes > writes)

    assert max(looked_at) < MANY, "the other pool was worked through, too"


async def test_a_pool_that_changes_once_more_while_it_ends_ends_in_peace(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.put("one", 0)
    world.held = dict  # type: ignore[method-assign]
    async with world.published() as pools:
        assert pools.pools

        def changed_meanwhile(*args: Any, **options: Any) -> Publication:
            monkeypatch.undo()
            pools.requeue()
            return publish(*args, **options)

        monkeypatch.setattr(cluster_pools, "publish", changed_meanwhile)
        async with asyncio.timeout(30):
            while pools.pools:  # noqa: ASYNC110  No event says so.
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)

    assert not pools.pools
    assert "failed" not in caplog.text
