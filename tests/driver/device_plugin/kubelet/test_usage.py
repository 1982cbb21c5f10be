"""Slots follow what the kubelet's containers use: passes, writes, and what people are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from driver.device_ids import DeviceKey
from driver.device_plugin.kubelet import usage as kubelet_usage
from driver.device_plugin.kubelet.allocations import Given
from driver.device_plugin.kubelet.usage import SlotReconciler, Times
from driver.instances.slots.node_pods import ListedDevice, Listing, NodePod, NodePods, PodName
from driver.instances.slots.slot_writes import SlotWrite
from driver.instances.slots.slots import instance_slots
from driver.plumbing.prometheus import SLOT_RELEASE_SECONDS
from kube.calls.api import ApiError, InvalidError, UnavailableError
from kube.events.api import Event
from kube.objects import ObjectKey
from kube.stores.api import Added, Deleted, Modified
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    NODE_A,
    NODE_B,
    NODE_C,
    an_instance_object,
)
from tests.driver.tasks import running, until
from tests.fakes.slot_instances import FakeInstances
from tests.fakes.slots import FakeSlotObjects

RESOURCE = f"akri.sh/{CAMERA_1}"
SLOT_0, SLOT_1 = f"{CAMERA_1}-0", f"{CAMERA_1}-1"
USER = PodName("default", "user")
KEY = ObjectKey("default", "user")


def a_pod(*, finished: bool = False, amount: int = 1) -> NodePod:
    return NodePod(USER, "uid-of-user", finished, {RESOURCE: amount} if amount else {})


class FakePods:
    """What a watch shows, and what a read shows."""

    def __init__(self) -> None:
        self.stored: tuple[NodePod, ...] = ()
        self.seen: tuple[NodePod, ...] = ()
        self.reads = 0

    def known(self) -> NodePods:
        return NodePods(0.0, self.seen)

    async def read(self) -> NodePods:
        self.reads += 1
        self.seen = self.stored
        return NodePods(asyncio.get_running_loop().time(), self.stored)


class FakeNodeSide:
    """A node's slots, its kubelet's account, and its keeper."""

    def __init__(self) -> None:
        self.slots = FakeSlotObjects(FakeInstances.of(CAMERA_1))
        self.pods = FakePods()
        self.used: set[tuple[PodName, str]] | None = set()
        self.asked = 0
        self.events: list[Event] = []
        self.given = Given(asyncio.get_running_loop().time)
        self.keeper = SlotReconciler(
            NODE_A, self.slots, self.pods, self._usage, self.given, self.events.append
        )

    async def _usage(self) -> Listing | None:
        self.asked += 1
        if self.used is None:
            return None
        devices = (ListedDevice(p, "main", DeviceKey(RESOURCE, d)) for p, d in self.used)
        return Listing(asyncio.get_running_loop().time(), frozenset(devices))

    def by_hand(self, slot: str, value: str | None) -> None:
        self.slots.stored.by_hand(slot, value)
        self.slots.sees_all()

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        async with running(self.keeper.run()):
            yield

    async def passes(self, number: int = 1) -> None:
        """Wait until so many more have begun."""
        wanted = self.asked + number
        await until(lambda: self.asked >= wanted)


async def test_at_the_start_what_nobody_uses_is_released() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.by_hand(SLOT_1, NODE_B)

    async with side.kept():
        await until(lambda: side.slots.stored.usage() == {SLOT_1: NODE_B})

    assert side.pods.reads == 1


async def test_no_pod_is_read_while_all_slots_are_listed() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.pods.stored = side.pods.seen = (a_pod(),)
    side.used = {(USER, SLOT_0)}

    async with side.kept():
        await side.passes()
        side.keeper.pod_changed(Added(KEY, a_pod()))
        await side.passes()

    assert side.pods.reads == 0
    assert side.slots.writes == []


async def test_a_pod_that_goes_starts_a_pass() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.pods.stored = side.pods.seen = (a_pod(),)
    side.used = {(USER, SLOT_0)}

    async with side.kept():
        await side.passes()
        side.used, side.pods.stored = set(), ()
        side.keeper.pod_changed(Deleted(KEY, a_pod()))
        await until(lambda: side.slots.stored.usage() == {})


async def test_how_soon_a_pods_slots_are_free_is_measured_once() -> None:
    side, before = FakeNodeSide(), released()
    side.by_hand(SLOT_0, NODE_A)
    side.pods.stored = side.pods.seen = (a_pod(),)
    side.used = {(USER, SLOT_0)}

    async with side.kept():
        await side.passes()
        side.used, side.pods.stored = set(), ()
        side.keeper.pod_changed(Deleted(KEY, a_pod()))
        await until(lambda: released() > before)
        side.keeper.pod_changed(Added(KEY, a_pod()))
        await side.passes()

    assert released() == before + 1


def released() -> float:
    """How many releases were measured."""
    (found,) = SLOT_RELEASE_SECONDS.collect()
    return next(s.value for s in found.samples if s.name.endswith("_count"))


async def test_pods_without_devices_start_no_pass() -> None:
    side = FakeNodeSide()

    async with side.kept():
        await side.passes()
        side.keeper.pod_changed(Added(KEY, a_pod(amount=0)))
        for _ in range(5):
            await asyncio.sleep(0)

    assert side.asked == 1


async def test_a_listing_that_lags_is_asked_for_again_soon() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.used = {(USER, SLOT_0)}

    async with side.kept():
        await side.passes(2)
        side.used = set()
        await until(lambda: side.slots.stored.usage() == {})


async def test_without_the_kubelets_account_nothing_is_released() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.used = None

    async with side.kept():
        await side.passes(3)
        assert side.slots.writes == []
        side.used = set()
        await until(lambda: side.slots.stored.usage() == {})


async def test_a_slot_that_is_given_while_it_is_judged_stays() -> None:
    """The write waits for the lock that the Allocate holds, and then it is overtaken."""
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.pods.stored = ()

    async with side.given.locks.of([CAMERA_1]):
        task = asyncio.create_task(side.keeper.run())
        await until(lambda: side.pods.reads > 0)
        side.given.note([DeviceKey(RESOURCE, SLOT_0)])
        side.used, side.pods.stored = {(USER, SLOT_0)}, (a_pod(),)
    await side.passes()
    task.cancel()
    await asyncio.wait([task])

    assert side.slots.writes == []
    assert side.slots.stored.usage() == {SLOT_0: NODE_A}


async def test_a_conflict_is_decided_anew_at_once() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.slots.stored.by_hand(SLOT_1, NODE_B)

    async with side.kept():
        await until(lambda: side.slots.stored.usage() == {SLOT_1: NODE_B})

    assert len(side.slots.writes) == 2


async def test_a_write_that_is_refused_for_good_does_not_hold_up_the_rest() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.slots.faults = [lambda *_: InvalidError("no", status=422)]

    async with side.kept():
        await until(lambda: len(side.slots.writes) == 1)
        side.keeper.pod_changed(Added(KEY, a_pod()))
        await until(lambda: side.slots.stored.usage() == {})


async def test_a_container_without_a_slot_gets_it_back() -> None:
    side = FakeNodeSide()
    side.pods.stored = side.pods.seen = (a_pod(),)
    side.used = {(USER, SLOT_0)}

    async with side.kept():
        await until(lambda: side.slots.stored.usage() == {SLOT_0: NODE_A})

    assert side.events == []


async def test_a_container_whose_slot_another_node_has_is_told_of_once() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_B)
    side.pods.stored = side.pods.seen = (a_pod(),)
    side.used = {(USER, SLOT_0)}

    async with side.kept():
        await until(lambda: bool(side.events))
        side.keeper.pod_changed(Added(KEY, a_pod()))
        await side.passes(1)
        side.keeper.pod_changed(Added(KEY, a_pod()))
        await side.passes(1)

    (event,) = side.events
    assert (event.reason, event.regarding.uid) == ("SlotConflict", "uid-of-user")
    assert "held by node node-b" in event.note


async def test_a_conflict_is_the_same_after_the_kubelet_did_not_answer() -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_B)
    side.pods.stored = side.pods.seen = (a_pod(),)
    used = side.used = {(USER, SLOT_0)}

    async with side.kept():
        await until(lambda: bool(side.events))
        for answer in (None, used, used):
            side.used = answer
            side.keeper.pod_changed(Added(KEY, a_pod()))
            await side.passes(1)

    assert len(side.events) == 1


@pytest.mark.parametrize("spec", [{"usage": {}}, {"usage": {SLOT_0: NODE_C}, "capacity": 3}])
async def test_a_container_without_a_slot_is_thought_of_when_its_instance_changes(
    spec: dict[str, Any],
) -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_B)
    side.pods.stored = side.pods.seen = (a_pod(),)
    side.used = {(USER, SLOT_0)}
    old, new = side.slots.views()[CAMERA_1], instance_slots(an_instance_object(**spec))

    async with side.kept():
        await until(lambda: bool(side.events))
        before = side.asked
        side.keeper.instance_changed(Modified(KEY, old, replace(new, name=CAMERA_2)))
        await none_begins(side, before)
        side.keeper.instance_changed(Modified(KEY, old, new))
        await side.passes()


async def test_a_write_that_fails_every_time_keeps_no_other_slot_taken() -> None:
    def is_away(_: FakeInstances, write: SlotWrite) -> ApiError | None:
        return UnavailableError("no answer") if write.instance == CAMERA_1 else None

    side = FakeNodeSide()
    side.slots.stored.bodies[CAMERA_2] = an_instance_object(CAMERA_2)
    side.by_hand(SLOT_0, NODE_A)
    side.by_hand(f"{CAMERA_2}-0", NODE_A)
    side.slots.faults = [is_away] * 1000

    async with side.kept():
        await until(lambda: side.slots.stored.usage() == {SLOT_0: NODE_A})
        side.slots.faults = []
        await until(lambda: side.slots.stored.usage() == {})


async def test_only_own_slots_that_change_start_a_pass() -> None:
    side = FakeNodeSide()
    free = instance_slots(an_instance_object())
    others = instance_slots(an_instance_object(usage={SLOT_0: NODE_B}))
    own = instance_slots(an_instance_object(usage={SLOT_0: NODE_A}))

    async with side.kept():
        await side.passes()
        side.keeper.instance_changed(Modified(KEY, free, others))
        for _ in range(5):
            await asyncio.sleep(0)
        assert side.asked == 1
        side.keeper.instance_changed(Modified(KEY, own, free))
        await side.passes()


async def test_once_it_is_alone_a_driver_remembers_whose_a_device_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kubelet_usage, "TIMES", Times(alone=0.0))
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    init_only = NodePod(PodName("default", "init-only"), "uid-of-it", False, {RESOURCE: 1})
    side.pods.stored = (a_pod(), init_only)
    side.used = {(USER, SLOT_0)}

    async with side.kept():
        await side.passes()
        side.used, side.pods.stored = set(), (init_only,)
        side.keeper.pod_changed(Deleted(KEY, a_pod()))
        await until(lambda: side.slots.stored.usage() == {})


async def none_begins(side: FakeNodeSide, before: int) -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    assert side.asked == before


async def test_what_was_given_is_looked_at_when_the_kubelet_has_it() -> None:
    side = FakeNodeSide()
    free = instance_slots(an_instance_object())
    own = instance_slots(an_instance_object(usage={SLOT_0: NODE_A}))

    async with side.kept():
        await side.passes()
        side.given.note([DeviceKey(RESOURCE, SLOT_0)])
        side.keeper.instance_changed(Modified(KEY, free, own))
        await none_begins(side, 1)
        await side.passes()


async def test_a_pod_that_comes_is_looked_at_when_the_kubelet_has_it() -> None:
    side = FakeNodeSide()

    async with side.kept():
        await side.passes()
        side.keeper.pod_changed(Added(KEY, a_pod()))
        await none_begins(side, 1)
        await side.passes()


@pytest.mark.parametrize("value", [None, "", NODE_B])
async def test_an_own_release_starts_no_pass_and_what_another_makes_of_the_slot_does(
    value: str | None,
) -> None:
    side = FakeNodeSide()
    side.by_hand(SLOT_0, NODE_A)
    side.by_hand(SLOT_1, NODE_A)
    side.used = {(USER, SLOT_1)}
    old = instance_slots(side.slots.stored.bodies[CAMERA_1])
    usage = {SLOT_0: value, SLOT_1: NODE_A} if value != NODE_B else {SLOT_1: NODE_B}
    new = instance_slots(an_instance_object(usage=usage))

    def shown(stored: FakeInstances, write: SlotWrite) -> None:
        """The watch is faster than the answer."""
        side.keeper.instance_changed(Modified(KEY, old, new))

    side.slots.faults.append(shown)
    side.pods.stored = side.pods.seen = (a_pod(),)
    async with side.kept():
        await until(lambda: side.slots.stored.usage() == {SLOT_1: NODE_A})
        if value == NODE_B:
            await until(lambda: side.asked == 2)
        else:
            await none_begins(side, 1)
