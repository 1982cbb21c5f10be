"""Slots of nodes that are gone."""

from __future__ import annotations

from datetime import datetime, timedelta

from driver.api import NodeName
from driver.lost_nodes import holding_nodes, plan_lost_nodes
from driver.slots import SlotWrite
from tests.driver.builders import NOW
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    NODE_A,
    NODE_B,
    NODE_C,
    FakeInstances,
    by_configuration,
    some_slots,
)

GRACE = timedelta(minutes=5)
USAGE = {
    f"{CAMERA_1}-0": NODE_A,
    f"{CAMERA_1}-1": by_configuration(CAMERA_1, NODE_B),
    f"{CAMERA_2}-0": NODE_C,
}


def used() -> FakeInstances:
    stored = FakeInstances.of(CAMERA_1, CAMERA_2)
    for slot, value in USAGE.items():
        stored.by_hand(slot, value)
    return stored


def plan(stored: FakeInstances, **minutes: float) -> tuple[SlotWrite, ...]:
    """The plan where these nodes, `a` to `c`, were lost so many minutes ago."""
    since: dict[NodeName, datetime] = {
        NodeName(f"node-{n}"): NOW - timedelta(minutes=m) for n, m in minutes.items()
    }
    return plan_lost_nodes(stored.views(), since, grace=GRACE, now=NOW)


def test_slots_of_a_lost_node_are_released_in_its_name() -> None:
    stored = used()

    writes = plan(stored, a=5, c=10)
    stored.write(writes)

    assert [write.node for write in writes] == [NODE_A, NODE_C]
    assert stored.usage() == {f"{CAMERA_1}-1": by_configuration(CAMERA_1, NODE_B)}
    assert plan(stored, a=5, c=10) == ()


def test_a_node_keeps_its_slots_within_the_grace_period() -> None:
    assert plan(used(), a=4.9) == ()


def test_nodes_that_are_there_keep_theirs() -> None:
    assert plan(used()) == ()


def test_a_name_that_no_node_has_is_lost_like_a_node() -> None:
    stored = FakeInstances.of(CAMERA_1)
    stored.by_hand(f"{CAMERA_1}-0", "node-x")

    stored.write(plan(stored, x=6))

    assert stored.usage() == {}


def test_two_lost_nodes_of_one_instance_are_two_writes() -> None:
    writes = plan(used(), a=6, b=6)

    assert [(w.instance, w.node, sorted(w.changes)) for w in writes] == [
        (CAMERA_1, NODE_A, [0]),
        (CAMERA_1, NODE_B, [1]),
    ]


def test_values_that_name_no_holder_name_no_node() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": "C:x", f"{CAMERA_1}-1": NODE_B})

    assert holding_nodes(slots) == {NODE_B}
