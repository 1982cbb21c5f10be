"""Slots of nodes that are gone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import NodeName
from driver.instances.slots.lost_nodes import (
    NOTHING_IN_USE,
    Absences,
    NodeState,
    absences,
    asked_for,
    holding_nodes,
    lost_sentence,
    node_state,
    plan_foreign_holders,
    plan_lost_nodes,
)
from driver.instances.slots.node_pods import NodePod, node_pod
from driver.instances.slots.slot_writes import SlotWrite
from driver.names import label_value
from tests.driver.builders import NOW
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    NODE_A,
    NODE_B,
    NODE_C,
    RESOURCE,
    by_configuration,
    some_slots,
)
from tests.fakes.slot_instances import FakeInstances

Plan: TypeAlias = tuple[SlotWrite, ...]

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


def plan(stored: FakeInstances, *nodes: NodeName, asked: Collection[str] = ()) -> Plan:
    """The plan where these nodes are lost, with what their pods may use all the same."""
    return plan_lost_nodes(stored.views(), dict.fromkeys(nodes, asked))


def test_slots_of_a_lost_node_are_released_in_its_name() -> None:
    stored = used()

    writes = plan(stored, NODE_A, NODE_C)
    stored.write(writes)

    assert [write.node for write in writes] == [NODE_A, NODE_C]
    assert stored.usage() == {f"{CAMERA_1}-1": by_configuration(CAMERA_1, NODE_B)}
    assert plan(stored, NODE_A, NODE_C) == ()


def test_nodes_that_are_there_keep_theirs() -> None:
    assert plan(used()) == ()


def test_a_name_that_no_node_has_is_lost_like_a_node() -> None:
    stored = FakeInstances.of(CAMERA_1)
    stored.by_hand(f"{CAMERA_1}-0", "node-x")

    stored.write(plan(stored, NodeName("node-x")))

    assert stored.usage() == {}


def test_a_slot_is_kept_as_long_as_a_pod_of_its_node_asks_for_its_resource() -> None:
    through_instance, through_configuration = f"akri.sh/{CAMERA_1}", RESOURCE
    both = {f"{CAMERA_1}-0": NODE_A, f"{CAMERA_1}-1": by_configuration(CAMERA_1, NODE_A)}
    stored = FakeInstances.of(CAMERA_1)
    for slot, value in both.items():
        stored.by_hand(slot, value)

    def released(*asked: str) -> list[list[int]]:
        return [sorted(write.changes) for write in plan(stored, NODE_A, asked=asked)]

    assert released(through_instance, through_configuration) == []
    assert released(through_instance) == [[1]]
    assert released(through_configuration) == [[0]]
    assert released("akri.sh/other") == released() == [[0, 1]]


def test_a_slot_of_which_nobody_can_say_what_it_is_for_is_kept_for_any_pod() -> None:
    stored = FakeInstances.of(CAMERA_1)
    stored.by_hand(f"{CAMERA_1}-0", f"C:{CAMERA_2}:{NODE_A}")

    assert plan(stored, NODE_A, asked=[RESOURCE]) == ()
    assert plan(stored, NODE_A, asked=[f"akri.sh/{CAMERA_1}"]) == ()
    assert len(plan(stored, NODE_A, asked=[f"akri.sh/{CAMERA_2}"])) == 1


def a_pod(phase: str, resource: str = RESOURCE) -> NodePod:
    container = {"name": "c", "resources": {"limits": {resource: "1"}}}
    metadata = {"namespace": "default", "name": f"{phase}-pod", "uid": "u"}
    spec = {"containers": [container]}
    return node_pod({"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def test_pods_that_ended_ask_for_nothing_and_those_that_are_being_deleted_do() -> None:
    pods = [a_pod("Running"), a_pod("Pending", "akri.sh/b"), a_pod("Failed", "akri.sh/c")]

    assert asked_for(pods) == {RESOURCE, "akri.sh/b"}
    assert asked_for([a_pod("Succeeded")]) == asked_for([a_pod("Running", "cpu")]) == NOTHING_IN_USE


@given(
    st.lists(st.tuples(st.sampled_from(["Running", "Failed"]), st.sampled_from("abc"))),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_no_slot_is_free_while_anybody_may_be_using_it(
    pods: list[tuple[str, str]], is_ready: bool, is_shut_down: bool, exists: bool
) -> None:
    """What a pass does with one node, whatever Kubernetes says of it."""
    away = None if is_ready else NOW - 2 * GRACE
    states = [NodeState(NODE_A, away, out_of_service=is_shut_down)] if exists else []
    before = Absences(missing={NODE_A: NOW - 2 * GRACE})
    absent = absences(states, {NODE_A}, before, now=NOW)
    stored = used()
    camera = {"a": RESOURCE, "b": f"akri.sh/{CAMERA_1}", "c": "akri.sh/other"}
    asked = asked_for(a_pod(phase, camera[what]) for phase, what in pods)

    lost = dict.fromkeys(absent.lost(grace=GRACE, now=NOW), NOTHING_IN_USE)
    lost |= dict.fromkeys(absent.doubtful(grace=GRACE, now=NOW), asked)
    writes = plan_lost_nodes(stored.views(), lost)

    is_vouched_for = not exists or (not is_ready and is_shut_down)
    is_used = any(phase == "Running" and what == "b" for phase, what in pods)
    is_freed = is_vouched_for or (not is_ready and not is_used)
    assert [write.node for write in writes] == [NODE_A] * is_freed


def test_two_lost_nodes_of_one_instance_are_two_writes() -> None:
    writes = plan(used(), NODE_A, NODE_B)

    assert [(w.instance, w.node, sorted(w.changes)) for w in writes] == [
        (CAMERA_1, NODE_A, [0]),
        (CAMERA_1, NODE_B, [1]),
    ]


def test_values_that_name_no_holder_name_no_node() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": "C:x", f"{CAMERA_1}-1": NODE_B})

    assert holding_nodes(slots) == {NODE_B}


def a_node(*conditions: dict[str, str], taints: Sequence[str] = ()) -> NodeState:
    """A Node as the API server returns it, made a day ago."""
    metadata = {"name": NODE_A, "creationTimestamp": "2026-11-20T12:00:00Z"}
    spec = {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]} if taints else {}
    status = {"conditions": list(conditions)}
    return node_state({"metadata": metadata, "spec": spec, "status": status})


def test_an_administrator_says_that_a_node_is_shut_down() -> None:
    assert a_node(ready("False"), taints=["a", "node.kubernetes.io/out-of-service"]).out_of_service
    assert not a_node(ready("False"), taints=["node.kubernetes.io/unreachable"]).out_of_service


def test_only_a_node_that_is_not_ready_is_out_of_service() -> None:
    """Somebody may have forgotten the taint on a node that is back."""
    states = [NodeState(NODE_A, None, out_of_service=True)]
    states += [NodeState(NODE_B, NOW, out_of_service=True), NodeState(NODE_C, NOW - GRACE)]

    away = absences(states, (), Absences(), now=NOW)

    assert away.lost(grace=GRACE, now=NOW) == {NODE_B}
    assert away.doubtful(grace=GRACE, now=NOW) == {NODE_C}


def test_a_node_is_in_doubt_only_after_the_grace_period() -> None:
    away = Absences({NODE_A: NOW - 0.9 * GRACE, NODE_B: NOW - GRACE})

    assert away.doubtful(grace=GRACE, now=NOW) == {NODE_B}
    assert away.lost(grace=GRACE, now=NOW) == frozenset()


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
    assert {**later.missing, **later.not_ready} == {NODE_B: NOW - timedelta(minutes=2), NODE_C: NOW}


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
    (missing,) = plan(used(), NODE_A)
    (unready,) = plan(used(), NODE_B)
    since = Absences({NODE_B: NOW - GRACE}, {NODE_A: NOW - GRACE})
    tainted = Absences({NODE_B: NOW - GRACE}, out_of_service=frozenset({NODE_B}))

    assert lost_sentence(missing, since) == (
        f"Node node-a does not exist: it holds {CAMERA_1}-0 no longer."
    )
    assert lost_sentence(unready, since) == (
        "Node node-b is not Ready since 2026-11-21T11:55:00Z, and its pods are gone: it holds"
        f" {CAMERA_1}-1 no longer."
    )
    assert lost_sentence(unready, tainted) == (
        "Node node-b has the taint node.kubernetes.io/out-of-service: it holds"
        f" {CAMERA_1}-1 no longer."
    )
    assert lost_sentence(missing, Absences()) == (
        f"Node node-a does not see the device: it holds {CAMERA_1}-0 no longer."
    )


def test_what_others_hold_of_a_device_that_one_node_has_for_itself_is_released() -> None:
    """Somebody wrote it by hand; their drivers do not look at such an Instance."""
    stored = used()
    labelled = [(view, label_value(NODE_A)) for view in stored.views()]

    stored.write(plan_foreign_holders(labelled))

    assert stored.usage() == {f"{CAMERA_1}-0": NODE_A}


def test_the_node_itself_holds_by_a_long_name_too() -> None:
    name = "node." * 30 + "a"
    slots = some_slots(CAMERA_1, {f"{CAMERA_1}-0": name})

    assert plan_foreign_holders([(slots, label_value(name))]) == ()
