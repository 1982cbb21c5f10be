"""Slots of nodes that are gone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from driver.api import NodeName
from driver.lost_nodes import (
    Absences,
    NodeState,
    absences,
    holding_nodes,
    lost_sentence,
    node_state,
    plan_lost_nodes,
    plan_strangers,
)
from driver.names import label_value
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


def a_node(*conditions: dict[str, str]) -> NodeState:
    """A Node as the API server returns it, made a day ago."""
    metadata = {"name": NODE_A, "creationTimestamp": "2026-11-20T12:00:00Z"}
    body: dict[str, Any] = {"metadata": metadata, "status": {"conditions": list(conditions)}}
    return node_state(body)


def ready(status: str) -> dict[str, str]:
    changed = "2026-11-21T11:50:00Z"
    return {"type": "Ready", "status": status, "lastTransitionTime": changed}


@pytest.mark.parametrize(
    ("conditions", "away_since"),
    [
        ((ready("True"),), None),
        ((ready("False"),), NOW - timedelta(minutes=10)),
        (({"type": "DiskPressure", "status": "False"}, ready("Unknown")), NOW - timedelta(0, 600)),
        (({"type": "Ready", "status": "Unknown"},), NOW - timedelta(days=1)),
        ((), NOW - timedelta(days=1)),
    ],
)
def test_a_node_is_away_while_it_is_not_ready(
    conditions: tuple[dict[str, str], ...], away_since: datetime | None
) -> None:
    assert a_node(*conditions) == NodeState(NODE_A, away_since)


def test_a_name_without_a_node_is_away_since_it_was_first_noticed() -> None:
    states = [NodeState(NODE_A, None), NodeState(NODE_B, NOW - timedelta(minutes=2))]

    first = absences(states, {NODE_A, NODE_C}, Absences(), now=NOW)
    later = absences(states, {NODE_C}, first, now=NOW + timedelta(minutes=1))

    assert later == first
    assert later.since == {NODE_B: NOW - timedelta(minutes=2), NODE_C: NOW}


def test_a_name_that_is_mentioned_no_more_or_got_a_node_is_forgotten() -> None:
    first = absences([], {NODE_A, NODE_C}, Absences(), now=NOW)

    assert absences([NodeState(NODE_A, None)], {NODE_A}, first, now=NOW) == Absences()


def test_only_a_node_that_does_not_exist_is_gone() -> None:
    away = Absences({NODE_A: NOW - GRACE}, {NODE_B: NOW - GRACE, NODE_C: NOW})

    assert away.gone(grace=GRACE, now=NOW) == {NODE_B}


def test_it_is_looked_again_when_the_next_grace_ends() -> None:
    away = Absences({NODE_A: NOW - timedelta(minutes=2)}, {NODE_B: NOW, NODE_C: NOW - GRACE})

    def recheck(*nodes: NodeName) -> datetime | None:
        return away.recheck_at(nodes, grace=GRACE, now=NOW)

    assert recheck(NODE_A, NODE_B, NODE_C) == NOW + timedelta(minutes=3)
    assert recheck(NODE_B, NODE_C) == NOW + GRACE
    assert recheck(NODE_C) is None


def test_the_event_says_which_slots_and_why() -> None:
    (missing,) = plan(used(), a=5)
    (unready,) = plan(used(), b=5)
    since = Absences({NODE_B: NOW - GRACE}, {NODE_A: NOW - GRACE})

    assert lost_sentence(missing, since) == (
        f"Node node-a does not exist: it holds {CAMERA_1}-0 no longer."
    )
    assert lost_sentence(unready, since) == (
        f"Node node-b is not Ready since 2026-11-21T11:55:00Z: it holds {CAMERA_1}-1 no longer."
    )
    assert lost_sentence(missing, Absences()) == (
        f"Node node-a does not see the device: it holds {CAMERA_1}-0 no longer."
    )


def test_what_others_hold_of_a_device_that_one_node_has_for_itself_is_released() -> None:
    """Somebody wrote it by hand; their drivers do not look at such an Instance."""
    stored = used()
    labelled = [(view, label_value(NODE_A)) for view in stored.views()]

    stored.write(plan_strangers(labelled))

    assert stored.usage() == {f"{CAMERA_1}-0": NODE_A}


def test_the_node_itself_holds_by_a_long_name_too() -> None:
    name = "node." * 30 + "a"
    slots = some_slots(CAMERA_1, {f"{CAMERA_1}-0": name})

    assert plan_strangers([(slots, label_value(name))]) == ()
