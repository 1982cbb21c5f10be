"""Histories of a pool: changes, crashes, other hands, API servers that drop fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import NodeName
from driver.publishing.apply.adoption import Adopted
from driver.publishing.apply.pools import DesiredPool, PoolPlan
from driver.publishing.apply.resource_slices import (
    AllNodesScope,
    NodeScope,
    Scope,
    SliceDevice,
    counter_set,
    hostnames,
    slice_device,
)
from driver.publishing.apply.shards import SLICE_LIMIT, DeviceGroup
from driver.publishing.apply.slice_writes import Owner
from tests.driver.publishing.apply.test_pools_store import (
    CONSUMABLE_CAPACITY,
    COUNTERS,
    TAINTS,
    Disturbance,
    Store,
    a_slice,
    a_store,
    consumed,
    scheduler_sees,
    sync,
)

ON_NODE = NodeScope(NodeName("owner"))
SHARED: tuple[Scope, ...] = (
    AllNodesScope(),
    hostnames(frozenset({"a"})),
    hostnames(frozenset({"a", "b"})),
)
OWNER = Owner("v1", "Node", "owner", "node-uid")
DROPPED = st.sampled_from(
    [frozenset(), TAINTS, CONSUMABLE_CAPACITY, COUNTERS, TAINTS | CONSUMABLE_CAPACITY | COUNTERS]
)


@dataclass(frozen=True)
class Step:
    """What happens next.

    Attributes:
        desired: What the pool shall be from now on.
        disturbance: What happens while it is made so.
        deleted: Which slices somebody else deletes after that, by position.
        forgets: Whether the publisher starts again after that.
    """

    desired: DesiredPool | None
    disturbance: Disturbance | None
    deleted: frozenset[int]
    forgets: bool


def a_device(number: int, state: int) -> SliceDevice:
    """Device `number` in one of five states."""
    body: dict[str, Any] = {"name": f"device-{number}"}
    if state == 1:
        body["attributes"] = {"state": {"string": "changed"}}
    if state == 2:
        body["taints"] = [{"key": "example.com/offline", "effect": "NoSchedule"}]
    if state == 3:
        body["allowMultipleAllocations"] = True
    if state == 4:
        taken = {"counterSet": f"set-{number % 20}", "counters": {"units": {"value": "1"}}}
        body["consumesCounters"] = [taken]
    return slice_device(body)


@st.composite
def devices(draw: st.DrawFn) -> Sequence[SliceDevice]:
    """One of a few sets, and some differences: two pools have most in common, as in life."""
    found = dict.fromkeys(range(draw(st.sampled_from([0, 1, 64, 65, 130, 200]))), 0)
    for _ in range(draw(st.integers(0, 3))):
        start, length = draw(st.integers(0, 210)), draw(st.sampled_from([1, 2, 64]))
        if state := draw(st.integers(0, 5)) % 5:
            found.update(dict.fromkeys(range(start, start + length), state))
        else:
            found = {n: found[n] for n in found if n not in range(start, start + length)}
    return [a_device(number, found[number]) for number in sorted(found)]


@st.composite
def pools(draw: st.DrawFn, scopes: tuple[Scope, ...]) -> DesiredPool:
    found = draw(devices())
    cuts = sorted(draw(st.integers(0, len(found))) for _ in scopes[1:])
    bounds = [0, *cuts, len(found)]
    groups = tuple(
        DeviceGroup(scope, tuple(found[start:end]))
        for scope, start, end in zip(
            draw(st.permutations(scopes)), bounds, bounds[1:], strict=False
        )
    )
    names = sorted(consumed(device for group in groups for device in group.devices))
    counters = tuple(counter_set({"name": n, "counters": {"units": {"value": "1"}}}) for n in names)
    return DesiredPool(name="pool", driver="driver", groups=groups, owner=OWNER, counters=counters)


POSITIONS = st.frozensets(st.integers(0, 4), max_size=2)


def steps(scopes: tuple[Scope, ...]) -> st.SearchStrategy[list[Step]]:
    step = st.builds(
        Step,
        desired=st.none() | pools(scopes) | pools(scopes) | pools(scopes),
        disturbance=st.none() | st.builds(Disturbance, st.integers(0, 6), POSITIONS, st.booleans()),
        deleted=POSITIONS,
        forgets=st.booleans(),
    )
    return st.lists(step, min_size=1, max_size=5)


def check_history(store: Store, history: list[Step]) -> None:
    adopted: Adopted = {}
    for step in history:
        goal = scheduler_sees(sync(store, step.desired, adopted).store)
        synced = sync(store, step.desired, adopted, disturbance=step.disturbance)
        assert set(synced.seen) <= {synced.seen[0], goal, None}
        assert not synced.lost, "a claim may have them"

        adopted = {} if step.forgets else synced.adopted
        names = sorted(synced.store.objects)
        store = synced.store.without(*(names[i] for i in step.deleted if i < len(names)))
    check_convergence(store, history[-1].desired, adopted)


def check_convergence(store: Store, desired: DesiredPool | None, adopted: Adopted) -> None:
    first = sync(store, desired, adopted)
    second = sync(first.store, desired, first.adopted)

    assert second.plan == PoolPlan()
    if desired is None:
        assert not first.store.objects
    else:
        assert scheduler_sees(first.store) == wanted(desired, store)
        assert all(len(view.content.devices) <= SLICE_LIMIT for view in first.store.views)


def wanted(desired: DesiredPool, store: Store) -> frozenset[tuple[object, str]]:
    """What the scheduler shall see, but for what the API server drops."""
    counters = () if "sharedCounters" in store.dropped else desired.counters
    devices = (
        (group.scope, slice_device(_kept(device, store)).text)
        for group in desired.groups
        for device in group.devices
    )
    return frozenset({*devices, *(("counters", text) for text in counters)})


def _kept(device: SliceDevice, store: Store) -> dict[str, Any]:
    return {name: v for name, v in device.body({}).items() if name not in store.dropped}


@given(steps((ON_NODE,)), DROPPED)
@settings(deadline=None)
def test_a_pool_of_a_node_is_never_seen_half_changed_and_converges(
    history: list[Step], dropped: frozenset[str]
) -> None:
    check_history(Store(dropped=dropped), history)


@given(steps(SHARED), DROPPED)
@settings(deadline=None)
def test_a_pool_of_shared_devices_is_never_seen_half_changed_and_converges(
    history: list[Step], dropped: frozenset[str]
) -> None:
    check_history(Store(dropped=dropped), history)


@given(pools((ON_NODE,)), st.data())
@settings(deadline=None)
def test_one_changed_device_is_one_update_in_the_same_generation(
    desired: DesiredPool, data: st.DataObject
) -> None:
    found = desired.groups[0].devices
    before = sync(Store(), desired)
    chosen = data.draw(st.integers(0, len(found) - 1)) if found else None
    changed = tuple(
        slice_device({**device.body({}), "attributes": {"new": {"int": 1}}})
        if number == chosen
        else device
        for number, device in enumerate(found)
    )

    after = sync(before.store, replace(desired, groups=(DeviceGroup(ON_NODE, changed),)))

    assert len(after.plan.updates) == (1 if found else 0)
    assert not after.plan.creates
    assert not after.plan.deletes
    assert {view.generation for view in after.store.views} == {1}


STORED = st.builds(
    a_slice,
    st.sampled_from(["00000-a", "00000-b", "00001-a", "00002-a", "fffff-a", "random", "0000-a"]),
    generation=st.integers(0, 3),
    count=st.integers(0, 3),
    devices=st.lists(st.integers(0, 200), max_size=90, unique=True).map(
        lambda numbers: [{"name": f"device-{number}"} for number in numbers]
    ),
    owner=st.sampled_from([OWNER, None]),
)


@given(
    st.lists(STORED, max_size=5, unique_by=lambda obj: str(obj["metadata"]["name"])),
    pools((ON_NODE,)),
)
@settings(deadline=None)
def test_whatever_is_stored_becomes_the_pool_that_is_wanted(
    objects: list[dict[str, Any]], desired: DesiredPool
) -> None:
    check_convergence(a_store(*objects), desired, {})
