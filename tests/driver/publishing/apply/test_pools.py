"""Plans of pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from driver.api import NodeName
from driver.publishing.apply.pools import DesiredPool, PoolPlan, plan_pool
from driver.publishing.apply.resource_slices import (
    AllNodesScope,
    NodeScope,
    Scope,
    hostnames,
    node_selector,
    slice_device,
)
from driver.publishing.apply.shards import DeviceGroup
from driver.publishing.apply.slice_writes import DeleteSlice, Owner, UpdateSlice
from tests.driver.publishing.apply.test_pools_store import (
    NOW,
    Disturbance,
    Store,
    a_slice,
    a_store,
    device,
    sync,
)

ON_NODE = NodeScope(NodeName("owner"))
OWNER = Owner("v1", "Node", "owner", "node-uid")
OFFLINE = {"key": "moorage.dev/offline", "effect": "NoSchedule"}


def a_pool(*bodies: dict[str, Any], scope: Scope = ON_NODE, **overrides: Any) -> DesiredPool:
    groups = (DeviceGroup(scope, tuple(map(slice_device, bodies))),)
    fields: dict[str, Any] = {"name": "pool", "driver": "driver", "groups": groups, "owner": OWNER}
    return DesiredPool(**{**fields, **overrides})


def many(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [device(f"device-{number:04}", **fields) for number in range(count)]


def writes(plan: PoolPlan) -> tuple[int, int, int]:
    return len(plan.deletes) + len(plan.outdated), len(plan.updates), len(plan.creates)


def generations(store: Store) -> set[int]:
    return {view.generation for view in store.views}


def test_a_long_node_name_leaves_room_for_what_the_api_server_adds() -> None:
    node = ".".join(["n" * 62] * 4)
    pool = a_pool(owner=Owner("v1", "Node", node, "node-uid"))

    (stored,) = sync(Store(), pool).store.objects.values()

    prefix = stored["metadata"]["generateName"]
    assert len(prefix) <= 58
    assert prefix.startswith("00000-driver-nnn")
    assert prefix.endswith("n-")


def test_an_empty_pool_is_one_slice_without_devices() -> None:
    (stored,) = sync(Store(), a_pool()).store.objects.values()

    assert stored["metadata"]["name"].startswith("00000-driver-owner-")
    assert stored["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "owner", "uid": "node-uid", "controller": True}
    ]
    assert stored["spec"] == {
        "driver": "driver",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "owner",
        "devices": [],
    }


def test_a_thousand_devices_are_sixteen_slices_in_order() -> None:
    plan = sync(Store(), a_pool(*many(1000))).plan

    names = [create.body["metadata"]["generateName"] for create in plan.creates]
    assert names == [f"{index:05x}-driver-owner-" for index in range(16)]
    assert [len(create.content.devices) for create in plan.creates] == [64] * 15 + [40]
    assert plan.creates[0].body["spec"]["devices"] == many(1000)[:64]


@pytest.mark.parametrize("position", [0, 500, 999])
@pytest.mark.parametrize("change", [{"attributes": {"x": {"int": 1}}}, {"taints": [OFFLINE]}, None])
def test_one_change_among_a_thousand_devices_rewrites_one_slice_in_its_generation(
    position: int, change: dict[str, Any] | None
) -> None:
    before = sync(Store(), a_pool(*many(1000)))
    bodies = many(1000)
    bodies[position : position + 1] = [] if change is None else [{**bodies[position], **change}]

    after = sync(before.store, a_pool(*bodies), before.adopted)

    assert writes(after.plan) == (0, 1, 0)
    assert generations(after.store) == {1}


def test_a_device_more_goes_where_there_is_room() -> None:
    before = sync(Store(), a_pool(*many(1000)))

    after = sync(before.store, a_pool(device("a-new-one"), *many(1000)))

    assert writes(after.plan) == (0, 1, 0)
    assert after.plan.updates[0].index == 15


def test_a_device_more_in_a_full_pool_adds_one_slice() -> None:
    before = sync(Store(), a_pool(*many(128)))

    after = sync(before.store, a_pool(device("a-new-one"), *many(128)))

    assert writes(after.plan) == (0, 2, 1)
    assert after.plan.creates[0].body["spec"]["devices"] == [device("a-new-one")]
    assert generations(after.store) == {2}


def test_what_is_gone_is_made_again() -> None:
    wiped = replace(sync(Store(), a_pool(*many(100))).store, objects={}, parsed={})

    after = sync(wiped, a_pool(*many(100)))

    assert writes(after.plan) == (0, 0, 2)
    assert generations(after.store) == {1}


def test_a_missing_slice_is_made_again_in_a_new_generation() -> None:
    before = sync(Store(), a_pool(*many(192))).store
    _, second, _ = before.objects

    after = sync(before.without(second), a_pool(*many(192)))

    assert writes(after.plan) == (0, 2, 1)
    assert generations(after.store) == {2}


def test_updates_come_first_then_creates_then_deletes_of_what_is_out_of_date() -> None:
    current = a_slice(generation=2, owner=OWNER)
    obsolete = a_slice("00001-driver-owner-x", owner=OWNER)

    plan = sync(a_store(current, obsolete), a_pool(*many(65))).plan

    assert writes(plan) == (1, 1, 1)
    assert plan.writes == (*plan.updates, *plan.creates, *plan.outdated)
    assert [type(write).__name__ for write in plan.writes] == [
        "UpdateSlice",
        "CreateSlice",
        "DeleteSlice",
    ]


def test_devices_that_move_are_in_a_slice_at_each_moment() -> None:
    """As where an older version goes on, for which each set of nodes has a slice of its own."""
    scopes = [hostnames(frozenset(names)) for names in ("a", "ab", "abc")]
    together = a_pool(*many(3), scope=scopes[0])
    apart = replace(together, groups=tuple(map(_group_of, many(3), scopes)))
    before = sync(Store(), together)

    after = sync(before.store, apart, before.adopted)
    back = sync(after.store, together, after.adopted)

    assert writes(after.plan) == (1, 0, 3)
    assert (after.lost, back.lost) == (frozenset(), frozenset())
    assert [len(synced.seen[-1] or ()) for synced in (after, back)] == [3, 3]


def _group_of(body: dict[str, Any], scope: Scope) -> DeviceGroup:
    return DeviceGroup(scope, (slice_device(body),))


def test_what_is_too_many_in_the_newest_generation_is_deleted_first() -> None:
    current = a_slice(generation=2, owner=OWNER)
    twin = a_slice("00000-driver-owner-y", generation=2, owner=OWNER)

    plan = sync(a_store(current, twin), a_pool(*many(1))).plan

    assert [type(write).__name__ for write in plan.writes] == ["DeleteSlice", "UpdateSlice"]


def test_a_crash_between_the_writes_of_a_generation_is_made_good() -> None:
    before = sync(Store(), a_pool(*many(192)))
    desired = a_pool(*many(128, attributes={"x": {"int": 1}}), *many(192)[128:])
    crashed = sync(before.store, desired, disturbance=Disturbance(after=2))

    after = sync(crashed.store, desired)

    assert crashed.seen[-1] is None
    assert writes(after.plan) == (1, 2, 1)
    assert len(after.seen[-1] or ()) == 192
    assert generations(after.store) == {3}


def test_a_predecessors_higher_generation_is_continued() -> None:
    stored = a_slice("random", generation=7, devices=many(1), owner=OWNER)

    after = sync(a_store(stored), a_pool(*many(1)))

    assert writes(after.plan) == (1, 0, 1)
    assert generations(after.store) == {8}


def test_old_generations_are_deleted_before_the_one_that_hides_them() -> None:
    stored = [a_slice(f"random-{n}", generation=5 - n, owner=OWNER) for n in range(3)]

    plan = sync(a_store(*stored), a_pool()).plan

    assert [delete.name for delete in plan.outdated] == ["random-2", "random-1", "random-0"]


def test_no_pool_deletes_every_slice_that_was_given() -> None:
    stored = a_slice(devices=many(1))

    assert sync(a_store(stored), None).plan == PoolPlan(
        deletes=(DeleteSlice("00000-driver-owner-x", "uid-00000-driver-owner-x", "1"),)
    )


@pytest.mark.parametrize(
    "other",
    [
        {"pool": "other"},
        {"driver": "other"},
        {"nodeName": "other-node"},
        {"allNodes": True},
    ],
)
def test_slices_of_others_are_left_alone_and_do_not_count(other: dict[str, Any]) -> None:
    foreign = a_slice("00000-other", generation=9, devices=many(1), **other)

    after = sync(a_store(foreign), a_pool(*many(1)))

    assert writes(after.plan) == (0, 0, 1)
    assert generations(after.store) == {1, 9}


def test_a_shared_pool_leaves_the_slices_of_a_node_of_its_name_alone() -> None:
    foreign = a_slice("00000-other", devices=many(1))

    after = sync(a_store(foreign), a_pool(*many(1), scope=AllNodesScope(), owner=None))

    assert writes(after.plan) == (0, 0, 1)


def test_what_our_owner_controls_is_replaced_if_its_node_name_is_wrong() -> None:
    stored = a_slice(devices=many(1), allNodes=True, owner=OWNER)

    after = sync(a_store(stored), a_pool(*many(1)))

    assert writes(after.plan) == (1, 0, 1)
    assert generations(after.store) == {2}


def test_a_slice_without_its_owner_gets_it() -> None:
    stored = a_slice(devices=many(1))

    after = sync(a_store(stored), a_pool(*many(1)))

    (update,) = after.plan.updates
    assert update.body["metadata"]["ownerReferences"] == [OWNER.reference()]
    assert plan_pool(a_pool(*many(1)), after.store.views) == PoolPlan()


def test_an_update_keeps_what_others_wrote_into_the_metadata() -> None:
    stored = a_slice(owner=OWNER)
    stored["metadata"].update(labels={"a": "b"}, annotations={"c": "d"}, managedFields=[{}])

    (update,) = sync(a_store(stored), a_pool(*many(1))).plan.updates

    assert isinstance(update, UpdateSlice)
    metadata = update.body["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "b"}, {"c": "d"})
    assert metadata["uid"] == "uid-00000-driver-owner-x"
    assert "managedFields" not in metadata


def test_the_time_of_a_taint_stays_when_its_device_changes() -> None:
    before = sync(Store(), a_pool(*many(1, taints=[OFFLINE])))
    later = replace(before.store, now="2026-11-21T13:00:00Z")

    after = sync(later, a_pool(*many(1, taints=[OFFLINE], attributes={"x": {"int": 1}})))

    (stored,) = after.store.objects.values()
    assert stored["spec"]["devices"][0]["taints"] == [{**OFFLINE, "timeAdded": NOW}]


def test_the_time_of_a_taint_goes_with_its_device_into_another_slice() -> None:
    desired = a_pool(*many(128, taints=[OFFLINE]))
    before = sync(Store(), desired)
    crashed = sync(
        before.store,
        a_pool(*many(129, taints=[OFFLINE])),
        disturbance=Disturbance(after=1, deleted=frozenset({0})),
    )
    later = replace(crashed.store, now="2026-11-21T13:00:00Z")

    after = sync(later, desired)

    times = {
        body["name"]: body["taints"][0]["timeAdded"]
        for stored in after.store.objects.values()
        for body in stored["spec"]["devices"]
    }
    assert {times[f"device-{number:04}"] for number in range(64, 128)} == {NOW}


def test_a_node_more_for_shared_devices_updates_their_slice_in_place() -> None:
    before = sync(Store(), a_pool(*many(3), scope=hostnames(frozenset({"a", "b"}))))

    after = sync(before.store, a_pool(*many(3), scope=hostnames(frozenset({"a", "b", "c"}))))

    (update,) = after.plan.updates
    (term,) = update.body["spec"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a", "b", "c"]}
    ]
    assert generations(after.store) == {1}


def test_a_pool_can_turn_from_selected_nodes_to_all() -> None:
    before = sync(Store(), a_pool(*many(3), scope=node_selector({"nodeSelectorTerms": [{}]})))

    (update,) = sync(before.store, a_pool(*many(3), scope=AllNodesScope())).plan.updates

    assert update.body["spec"]["allNodes"] is True
    assert "nodeSelector" not in update.body["spec"]
