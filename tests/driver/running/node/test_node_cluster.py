"""What a node publishes, pass by pass, while claims are heard of late."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import current_thread
from typing import Any, cast

import pytest

from driver.api import (
    NODE_LABEL,
    SHARED_LABEL_VALUE,
    Configuration,
    ConfigurationName,
    DeviceName,
    InstanceName,
)
from driver.discovery.handlers import Handlers, HandlerSettings
from driver.handlers.external_handlers import ExternalHandlers
from driver.handlers.node_sources import NodeSources
from driver.instances import inventory as inventories
from driver.instances.handler_discoveries import Discoveries
from driver.instances.inventory import Heard
from driver.instances.names import Collision
from driver.instances.stored.objects import StoredInstance
from driver.offer_paths import OfferPath
from driver.plumbing.disk import Folder
from driver.preparing.grants.health import problem_of
from driver.publishing.apiserver_allocations import AllocationWatch
from driver.publishing.apiserver_path import NodePath, TakenPath
from driver.publishing.desired import local_pools
from driver.publishing.desired.publication import Supply
from driver.publishing.desired.slices import Features
from driver.publishing.node_pools import NodePools
from driver.running.node import node_cluster
from driver.running.node.node_cluster import NodeCluster
from driver.running.node.node_place import OfferPlace
from kube.calls.api import ApiClient
from kube.objects import ObjectKey
from kube.stores.api import Deleted
from tests.driver.builders import NODE, a_configuration_object, a_device
from tests.driver.claim_builders import a_reference, a_result, prepared
from tests.fakes.allocations import FakeAllocations
from tests.fakes.slices import FakeSliceServer
from tests.fakes.tasks import FakeTasks

LOOP = ConfigurationName("loop")
FEATURES = Features(consumable_capacity=True, taints=True)


@dataclass
class FakeDiscoveries:
    """Handlers said this."""

    heard: dict[ConfigurationName, Heard] = field(default_factory=dict)

    complete = True

    def follow(self, _: Iterable[Configuration]) -> None:
        pass

    def say(self, *ids: str) -> None:
        self.heard[LOOP] = Heard("uid-of-loop", tuple(map(a_device, ids)))


@dataclass
class World:
    """A node's part of the cluster, with a Configuration of loop devices."""

    folder: Path
    server: FakeSliceServer = field(default_factory=FakeSliceServer)
    said: FakeDiscoveries = field(default_factory=FakeDiscoveries)
    allocations: FakeAllocations = field(default_factory=FakeAllocations)

    def __post_init__(self) -> None:
        external = ExternalHandlers(Folder(self.folder))
        sources = NodeSources(Handlers(HandlerSettings(), ()), external)
        place = OfferPlace(NODE, cast("NodePath", None), unique_devices_default=True)
        tasks = cast("asyncio.TaskGroup", FakeTasks())
        self.cluster = NodeCluster(cast("ApiClient", self.server), place, sources, tasks)
        self.cluster.node_view.taken = TakenPath(OfferPath.DRA, FEATURES)
        self.cluster.discoveries = cast("Discoveries", self.said)
        pools = self.cluster.pools
        pools.allocations = cast("AllocationWatch", self.allocations)
        pools.start(FEATURES)
        body = a_configuration_object()
        body["metadata"]["resourceVersion"] = "1"
        self.cluster.configurations.note(body)

    async def passes(self, *ids: str) -> set[tuple[str, str]]:
        """Pools and devices that are published a few passes after the node has these devices."""
        self.said.say(*ids)
        for _ in range(3):
            await self.cluster.reconcile()
            for pool in list(self.cluster.pools.pools.values()):
                await pool.reconcile()
        return {(pool, device["name"]) for pool, device in self.server.devices()}

    async def passes_after_watch(self, *ids: str) -> set[tuple[str, str]]:
        self.allocations.watch()
        return await self.passes(*ids)


async def test_a_device_that_a_claim_got_just_before_its_taint_stays(tmp_path: Path) -> None:
    """Claims are watched already, for another device that is away and that a claim has."""
    world = World(tmp_path)
    both = await world.passes("one", "two")
    world.allocations.claims |= both - _named(world.cluster, "two")
    assert await world.passes("two") == both
    assert await world.passes_after_watch("two") == both

    world.allocations.claims |= both
    assert await world.passes() == both
    assert await world.passes_after_watch() == both

    world.allocations.claims.clear()
    assert await world.passes_after_watch() == set()


def _named(cluster: NodeCluster, *ids: str) -> set[tuple[str, str]]:
    """The published devices of these ids, with their pools."""
    return {
        (pool, name)
        for pool, publication in cluster.pools.current.items()
        for name, offer in publication.offers.items()
        if offer.instance is not None and offer.instance.properties["UDEV_DEVPATH"] in ids
    }


async def test_who_gives_slots_hears_when_no_slice_shows_a_device_any_more(tmp_path: Path) -> None:
    """No inventory follows from it, and no Instance need change."""
    world, heard = World(tmp_path), list[frozenset[str]]()
    world.cluster.on_gone(lambda: heard.append(world.cluster.claimed_instances))
    world.allocations.claims |= await world.passes("one")
    await world.passes_after_watch()
    assert not heard

    world.allocations.claims.clear()
    await world.passes_after_watch()

    assert heard == [frozenset()]


async def test_where_devices_are_is_known_before_any_pass_and_without_the_api_server(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    assert world.cluster.where is None
    seen: list[bool] = []
    world.cluster.on_moved(lambda: seen.append(True))
    await world.passes("one")
    inventory = world.cluster.inventory
    assert inventory is not None
    (name,) = (instance.name for instance in inventory.instances)
    seen.clear()

    world.said.say("two")
    world.cluster.on_answer()

    assert seen == [True]
    where = world.cluster.where
    assert where is not None
    assert where.named(name) is None
    view = world.cluster.view
    assert view is not None
    assert view.where is where


async def test_a_driver_that_starts_calls_no_device_offline_that_is_reported(
    tmp_path: Path,
) -> None:
    """The pools are decided after the inventory, when claims are told already."""
    before = World(tmp_path)
    ((pool, name),) = await before.passes("one")
    assert before.cluster.inventory is not None
    known = {(str(NODE), DeviceName(name)): before.cluster.inventory.instances[0]}
    (device,) = prepared(a_reference(1), a_result(name), instances=known).devices
    world = World(tmp_path, before.server)
    world.said.say("one")

    await world.cluster.reconcile()

    view = world.cluster.view
    assert pool == NODE
    assert view is not None
    assert view.instance(device.allocated) is None, "its pool is not decided yet"
    assert problem_of(device, view) == ""


async def test_an_answer_that_comes_while_a_pass_is_worked_out_is_where_devices_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.said.say("one")

    async def meanwhile(_: int, function: Callable[..., Any], *values: Any) -> Any:
        found = function(*values)
        monkeypatch.undo()
        world.said.say("two")
        world.cluster.on_answer()
        return found

    monkeypatch.setattr(node_cluster, "in_thread_if_many", meanwhile)
    await world.cluster.reconcile()

    where, decided = world.cluster.where, world.cluster.inventory
    assert where is not None
    assert decided is not None
    (name,) = (instance.name for instance in decided.instances)
    assert where.named(name) is None, "that was before the answer"
    await world.cluster.reconcile()
    assert world.cluster.inventory is not decided


async def test_a_device_that_a_pool_began_to_show_meanwhile_has_its_home_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    await world.passes("one")
    assert world.cluster.inventory is not None
    (instance,) = world.cluster.inventory.instances
    (trace, *_) = local_pools.traces_of_instance(instance)
    there = {trace: "another"}
    homes = iter([{}, there, there])
    used: list[Mapping[str, Supply]] = []
    monkeypatch.setattr(NodePools, "homes", property(lambda _: next(homes)))
    monkeypatch.setattr(world.cluster.pools, "use", used.append)

    await world.cluster.reconcile()

    (supplies,) = used
    assert [name for name, supply in supplies.items() if supply.instances] == ["another"]


async def test_a_pass_over_many_lets_others_come_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, threads = World(tmp_path), set[str]()
    for module, name in ((node_cluster, "inventory_of"), (node_cluster, "local_supplies")):
        monkeypatch.setattr(module, name, noting(getattr(module, name), threads))

    await world.passes(*(f"number-{n}" for n in range(MANY)))

    assert threads, "it was worked out"
    assert current_thread().name not in threads


def noting(function: Callable[..., Any], threads: set[str]) -> Callable[..., Any]:
    def noted(*values: Any, **named: Any) -> Any:
        threads.add(current_thread().name)
        return function(*values, **named)

    return noted


async def test_a_local_instance_that_changes_makes_nobody_look_at_all_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands go with their Configuration, one by one."""
    world = World(tmp_path)
    await world.passes("one")
    heard: list[str] = []
    world.cluster.on_changed(lambda: heard.append("another sight"))
    monkeypatch.setattr(world.cluster.queue, "add", lambda _: heard.append("another pass"))

    world.cluster.on_instance(Deleted(KEY, an_instance(label=NODE)))
    assert heard == []

    world.cluster.on_instance(Deleted(KEY, an_instance(label=SHARED_LABEL_VALUE)))
    assert heard == ["another sight"]


async def test_a_name_that_is_free_again_is_looked_at_if_a_device_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    await world.passes("one")
    inventory = world.cluster.inventory
    assert inventory is not None
    waiting = {LOOP: (Collision("two", InstanceName(KEY.name)),)}
    world.cluster.node_view.decided(replace(inventory, collisions=waiting))
    asked: list[str] = []
    monkeypatch.setattr(world.cluster.queue, "add", lambda _: asked.append("pass"))

    for name, namespace in (("other-000002", "default"), (KEY.name, "elsewhere")):
        old = replace(an_instance(label=NODE), name=InstanceName(name), namespace=namespace)
        world.cluster.on_instance(Deleted(ObjectKey(namespace, name), old))
    assert asked == []

    world.cluster.on_instance(Deleted(KEY, an_instance(label=NODE)))
    assert asked == ["pass"]


KEY = ObjectKey("default", InstanceName("loop-000001"))


def an_instance(*, label: str) -> StoredInstance:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": {NODE_LABEL: label}}
    spec = {"configurationName": "loop", "nodes": [NODE], "brokerProperties": {}}
    return StoredInstance(
        namespace=KEY.namespace,
        name=InstanceName(KEY.name),
        uid="uid",
        resource_version="1",
        configuration=LOOP,
        body={"metadata": metadata, "spec": spec},
        slots_used=False,
    )


async def test_a_pass_works_out_what_changed_and_nothing_of_the_many_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, worked_out = World(tmp_path), Counter[str]()
    few = ConfigurationName("few")
    world.cluster.configurations.note(
        a_configuration_object("few") | {"metadata": metadata_of("few")}
    )
    world.said.heard[few] = Heard("uid-of-few", (a_device("other"),))
    await world.passes(*(f"number-{n}" for n in range(MANY)))
    for module, name in ((inventories, "instances_of"), (local_pools, "attribute_value")):
        monkeypatch.setattr(module, name, counting(getattr(module, name), worked_out))

    world.said.heard[few] = Heard("uid-of-few", (a_device("other"), a_device("newcomer")))
    await world.cluster.reconcile()
    world.cluster.where  # noqa: B018  As whoever prepares claims does, at each change.

    assert worked_out["instances_of"] == 1, "of the others follows what followed before"
    assert worked_out["attribute_value"] < MANY, "where a device is shown is known of the others"


MANY = 300


def metadata_of(name: str) -> dict[str, Any]:
    return {**a_configuration_object(name)["metadata"], "resourceVersion": "2"}


def counting(function: Callable[..., Any], counts: Counter[str]) -> Callable[..., Any]:
    def counted(*values: Any, **named: Any) -> Any:
        counts[function.__name__] += 1
        return function(*values, **named)

    return counted
