"""Histories of a node's pools: devices, claims and the driver, killed between any two writes.

A Configuration with two devices counts as one with many. At first an earlier driver may run, which
had one pool for the whole node. Whatever
happens, what a claim has stays published where the claim names it, no device is offered for more
uses than it has, whichever pools show it, and in the end the slices say what there is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driver.api import ATTRIBUTE_INSTANCE, ConfigurationName
from driver.instances.inventory import Heard, Inventory, inventory_of
from driver.plumbing.prometheus import CHANGES_HELD_BACK, PUBLISHED_SECONDS
from driver.publishing import node_pools
from driver.publishing.apiserver_allocations import AllocationWatch
from driver.publishing.apiserver_pools import PoolListeners, PublishedPool
from driver.publishing.desired.flapping import STEADY_SECONDS
from driver.publishing.desired.local_pools import (
    Homes,
    KnownPools,
    local_supplies,
    traces_of_instance,
)
from driver.publishing.desired.pace import A_SECOND, BURST
from driver.publishing.desired.publication import local_supply
from driver.publishing.desired.slices import Features
from driver.publishing.node_pools import NodePools
from kube.calls.api import ApiClient, ApiError
from kube.objects import ObjectKey
from tests.driver.builders import NODE, a_configuration, a_device
from tests.driver.instances.test_inventory import a_verdict
from tests.fakes.allocations import FakeAllocations
from tests.fakes.killed import KilledError
from tests.fakes.slices import FakeSliceServer
from tests.fakes.tasks import FakeTasks

FEATURES = Features(consumable_capacity=False, taints=True, counters=True)
CONFIGURATIONS = ("camera", "disk")
DEVICES = ("one", "two", "three")

configurations = st.sampled_from(CONFIGURATIONS)
how_many = st.sampled_from([None, None, 0, 1, 2, 3])


def consumed(pool: str, device: dict[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    """What a device consumes of counter sets."""
    for each in device.get("consumesCounters") or ():
        yield (pool, each["counterSet"]), int(each["counters"]["units"]["value"])


class LocalPools(RuleBasedStateMachine):
    """Two Configurations with a few devices each."""

    def __init__(self) -> None:
        super().__init__()
        self.server = FakeSliceServer()
        self.loop = asyncio.Runner()
        self.seconds = 0.0
        self.claims: set[tuple[str, str]] = set()
        self.plugged: dict[str, set[str]] = {}
        self.capacities = dict.fromkeys(CONFIGURATIONS, 1)
        self.unheard: set[str] = set()
        self.is_old = True
        self.start()

    def teardown(self) -> None:
        try:
            self.settles()
        finally:
            self.loop.close()

    def start(self) -> None:
        """A process that knows nothing yet but what the API server has."""
        listeners = PoolListeners(published=PUBLISHED_SECONDS.observe)
        tasks = cast("asyncio.TaskGroup", FakeTasks())
        client = cast("ApiClient", self.server)
        self.pools = NodePools(client, NODE, tasks, listeners, lambda: self.seconds)
        self.allocations = FakeAllocations(self.claims)
        self.pools.allocations = cast("AllocationWatch", self.allocations)
        self.watch()

        async def started() -> None:
            self.pools.start(FEATURES)

        self.loop.run(started())

    @rule()
    def watch(self) -> None:
        """All slices are seen."""
        for body in self.server.objects.values():
            self.pools.slices.note(body)
        seen = {ObjectKey("", name) for name in self.server.objects}
        self.pools.slices.finish_list(seen, self.server.version)

    @invariant()
    def kube_scheduler_takes_each_pool_for_valid(self) -> None:
        """One in which a device consumes of a set that is not there gives nothing."""
        for pool, device in self.server.devices():
            sets = self.server.counter_sets(pool)
            assert {c["counterSet"] for c in device.get("consumesCounters") or ()} <= sets.keys()

    @rule(seconds=st.sampled_from([0.02, 1.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        """Until then what flaps counts as away, and what was written often is left as it is."""
        self.seconds += seconds

    @rule()
    def watch_claims(self) -> None:
        self.allocations.watch()

    @rule(configuration=configurations, devices=st.sets(st.sampled_from(DEVICES)))
    def plug(self, configuration: str, devices: set[str]) -> None:
        self.plugged[configuration] = devices

    @rule(configuration=configurations, capacity=st.integers(1, 3))
    def configure(self, configuration: str, capacity: int) -> None:
        self.capacities[configuration] = capacity

    @rule(configuration=configurations)
    def delete_configuration(self, configuration: str) -> None:
        self.plugged.pop(configuration, None)

    @rule(configuration=configurations)
    def hear_nothing(self, configuration: str) -> None:
        self.unheard ^= {configuration}

    @rule()
    def update_the_driver(self) -> None:
        self.is_old = False
        self.start()

    @rule()
    def restart(self) -> None:
        self.start()

    def inventory(self) -> Inventory:
        verdicts = [
            replace(a_verdict(name), configuration=a_configuration(name, capacity=capacity))
            for name, capacity in self.capacities.items()
            if name in self.plugged
        ]
        heard = {
            ConfigurationName(v.name): Heard(
                v.uid,
                # One of the same name in the other Configuration is the same device.
                tuple(a_device(f"{v.name}-{d}", nodes=(d,)) for d in sorted(self.plugged[v.name])),
            )
            for v in verdicts
            if v.name not in self.unheard
        }
        return inventory_of(verdicts, heard, NODE)

    def use(self) -> None:
        inventory = self.inventory()
        if self.is_old:
            self.pools.use({NODE: local_supply(inventory)})
            return
        known = KnownPools(self.pools.homes, self.pools.current.keys())
        self.pools.use(local_supplies(inventory, NODE, known, most=1))

    @rule(kill=how_many, lose=how_many)
    def pass_over(self, kill: int | None, lose: int | None) -> None:
        """Passes that may fail at any write; a killed process begins anew."""
        self.use()
        self.server.kill_after, self.server.lose_after = kill, lose
        try:
            for pool in list(self.pools.pools.values()):
                with suppress(ApiError):
                    self.loop.run(pool.reconcile())
        except KilledError:
            self.server.kill_after = None
            self.start()
        self.server.kill_after = self.server.lose_after = None

    def free(self) -> list[tuple[str, str]]:
        """What a new claim may get."""
        left = self.units_left()
        return sorted(
            (pool, device["name"])
            for pool, device in self.server.devices()
            if not device.get("taints")
            and (pool, device["name"]) not in self.claims
            and all(left[name] >= units for name, units in consumed(pool, device))
        )

    def units_left(self) -> Counter[tuple[str, str]]:
        """Of counter sets, by pool and name, less what devices consume that claims have."""
        pools = {pool for pool, _ in self.server.devices()}
        left = Counter(
            {(p, name): n for p in pools for name, n in self.server.counter_sets(p).items()}
        )
        for pool, device in self.server.devices():
            if (pool, device["name"]) in self.claims:
                left.subtract(dict(consumed(pool, device)))
        return left

    @precondition(lambda self: self.free())
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        self.claims.add(data.draw(st.sampled_from(self.free())))

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.claims.discard(data.draw(st.sampled_from(sorted(self.claims))))

    def stored(self) -> Mapping[tuple[str, str], dict[str, Any]]:
        return {
            (o["spec"]["pool"]["name"], device["name"]): device
            for o in self.server.objects.values()
            for device in o["spec"].get("devices", ())
        }

    @invariant()
    def what_a_claim_has_is_published_where_it_was(self) -> None:
        assert self.claims <= self.stored().keys()

    @invariant()
    def no_device_is_in_two_pools(self) -> None:
        places = {
            (device["attributes"][ATTRIBUTE_INSTANCE]["string"], pool)
            for (pool, _), device in self.stored().items()
        }
        assert not [name for name, count in Counter(i for i, _ in places).items() if count > 1]

    @rule()
    def settles(self) -> None:
        """Once nothing fails, all that there is is shown, untainted, and nothing else is."""
        self.unheard.clear()
        for _ in range(10):
            self.seconds += STEADY_SECONDS
            self.watch()
            self.watch_claims()
            self.pass_over(None, None)
        if self.claims:
            return
        wanted = {i.name for i in self.inventory().instances}
        shown = [d["attributes"][ATTRIBUTE_INSTANCE]["string"] for d in self.stored().values()]
        assert set(shown) == wanted
        assert len(self.free()) == sum(i.capacity for i in self.inventory().instances)
        if not self.is_old:
            counters = any("sharedCounters" in o["spec"] for o in self.server.objects.values())
            assert len(self.server.objects) <= 1 + len(CONFIGURATIONS) + counters


async def test_a_device_has_its_home_as_soon_as_it_is_decided_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That may be done in a thread, and another Configuration may come to be one of many."""
    machine = await asyncio.to_thread(LocalPools)
    machine.plug("camera", {"one"})
    inventory, homes = machine.inventory(), list[Homes]()

    async def worked_out(_: int, function: Callable[..., Any], *values: Any) -> Any:
        homes.append(machine.pools.homes)
        return function(*values)

    monkeypatch.setattr(node_pools, "in_thread_if_many", worked_out)
    machine.pools.use({NODE: local_supply(inventory)})
    await machine.pools.pools[NODE].reconcile()
    await asyncio.to_thread(machine.loop.close)

    assert homes[0] == {t: NODE for i in inventory.instances for t in traces_of_instance(i)}


async def test_how_soon_a_change_is_published_is_measured_once() -> None:
    machine, before = await asyncio.to_thread(LocalPools), published()
    machine.plug("camera", {"one"})
    machine.pools.use({NODE: local_supply(machine.inventory())})
    for _ in range(2):
        await machine.pools.pools[NODE].reconcile()
    await asyncio.to_thread(machine.loop.close)

    assert published() == before + 1


def a_pool_of(machine: LocalPools, *devices: str) -> PublishedPool:
    machine.plug("camera", set(devices))
    machine.pools.use({NODE: local_supply(machine.inventory())})
    return machine.pools.pools[NODE]


async def flaps(machine: LocalPools, devices: Callable[[int], tuple[str, ...]]) -> int:
    """How many slices are written in a minute in which these are there, by the 20 ms."""
    before = machine.server.writes
    for turn in range(60 * 50):
        machine.seconds += 0.02
        pool = a_pool_of(machine, *devices(turn))
        machine.allocations.watch()
        await pool.reconcile()
    return machine.server.writes - before


async def test_a_device_that_flaps_is_shown_when_it_has_stayed() -> None:
    machine = await asyncio.to_thread(LocalPools)
    await a_pool_of(machine, "two").reconcile()

    before = held_back("flapping")
    first = [await flaps_once(machine) for _ in range(2)]
    assert first == [{"one", "two"}] * 2, "the first changes go out at once"

    assert await flaps(machine, lambda turn: ("one", "two") if turn % 2 else ("two",)) < 20
    assert shown(machine) == {"two"}
    assert held_back("flapping") > before
    await flaps(machine, lambda _: ("one", "two"))
    assert shown(machine) == {"one", "two"}
    await asyncio.to_thread(machine.loop.close)


async def flaps_once(machine: LocalPools) -> set[str]:
    """What is shown when a device has come; then it goes again."""
    machine.seconds += 0.02
    await a_pool_of(machine, "one", "two").reconcile()
    found = shown(machine)
    await a_pool_of(machine, "two").reconcile()
    return found


async def test_devices_that_come_without_end_are_published_at_a_rate() -> None:
    machine = await asyncio.to_thread(LocalPools)
    await a_pool_of(machine).reconcile()
    before = held_back("rate")

    writes = await flaps(machine, lambda turn: (f"number-{turn}",))

    assert writes <= BURST + 60 * A_SECOND + 1
    assert 0 < held_back("rate") - before <= writes
    await asyncio.to_thread(machine.loop.close)


def shown(machine: LocalPools) -> set[str]:
    """The devices that a claim may get."""
    return {
        device["attributes"]["UDEV_DEVPATH"]["string"].removeprefix("camera-")
        for _, device in machine.server.devices()
        if not device.get("taints")
    }


def held_back(why: str) -> float:
    """How many changes were."""
    (found,) = CHANGES_HELD_BACK.collect()
    totals = (sample for sample in found.samples if sample.name.endswith("_total"))
    return next((s.value for s in totals if s.labels == {"why": why}), 0.0)


def published() -> float:
    """How many publications were measured."""
    (found,) = PUBLISHED_SECONDS.collect()
    return next(s.value for s in found.samples if s.name.endswith("_count"))


LocalPools.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestLocalPools = LocalPools.TestCase
