"""Instances that no node sees: marked, kept for their grace, removed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from driver.api import (
    NODE_LABEL,
    OFFLINE_SINCE,
    SLOTS_FINALIZER,
    ConfigurationName,
    NodeName,
)
from driver.instances.stored.objects import DeleteInstance
from driver.instances.unseen_instances import (
    ObservedInstance,
    Surroundings,
    UnseenPlan,
    free,
    keep_nodes,
    mark,
    observed_instance,
    plan_unseen,
)
from tests.driver.builders import NOW, a_configuration
from tests.driver.slot_builders import CAMERA_1, CONFIGURATION, NODE_A, NODE_B, an_instance_object

MINUTE = timedelta(minutes=1)
NOTHING = UnseenPlan((), None)


def an_observed_instance(
    *nodes: NodeName,
    label: str | None = "",
    offline_since: datetime | str | None = None,
    age: timedelta = timedelta(hours=1),
    **spec: Any,
) -> ObservedInstance:
    more = spec.pop("metadata", {})
    body = an_instance_object(CAMERA_1, spec.pop("usage", None), nodes=list(nodes), **spec)
    metadata = {**body["metadata"], "creationTimestamp": (NOW - age).isoformat(), **more}
    if label is not None:
        metadata["labels"] = {NODE_LABEL: label}
    if offline_since is not None:
        metadata["annotations"] = {OFFLINE_SINCE: str(offline_since)}
    return observed_instance({**body, "metadata": metadata})


def plan(
    *observed_instances: ObservedInstance, grace: timedelta | None = None, **options: Any
) -> UnseenPlan:
    configuration = a_configuration(CONFIGURATION, offline_grace_period=grace)
    arguments: dict[str, Any] = {
        "existing": [NODE_A, NODE_B],
        "gone": [],
        "claimed": frozenset(),
        **options,
    }
    surroundings = Surroundings(configurations={CONFIGURATION: configuration}, **arguments)
    return plan_unseen(observed_instances, surroundings, now=NOW)


def deleted(observed: ObservedInstance) -> UnseenPlan:
    slots = observed.slots
    decision = DeleteInstance(slots.namespace, slots.name, slots.uid, slots.resource_version)
    return UnseenPlan((decision,), None)


def test_who_is_seen_is_left_alone() -> None:
    assert (
        plan(
            an_observed_instance(NODE_A), an_observed_instance(NODE_B, usage={f"{CAMERA_1}-0": "x"})
        )
        == NOTHING
    )


def test_an_instance_that_nobody_sees_is_first_marked() -> None:
    observed = an_observed_instance()

    assert plan(observed) == UnseenPlan((mark(observed.slots, NOW),), None)


def test_it_is_kept_for_five_minutes() -> None:
    early, late = (
        an_observed_instance(offline_since=NOW - 4 * MINUTE),
        an_observed_instance(offline_since=NOW - 5 * MINUTE),
    )

    assert plan(early) == UnseenPlan((), NOW + MINUTE)
    assert plan(late) == deleted(late)


def test_or_as_long_as_its_configuration_says() -> None:
    observed = an_observed_instance(offline_since=NOW - 5 * MINUTE)

    assert plan(observed, grace=6 * MINUTE) == UnseenPlan((), NOW + MINUTE)
    just_now = an_observed_instance(offline_since=NOW)
    assert plan(just_now, grace=timedelta()) == deleted(just_now)


def test_one_that_was_just_made_is_not_removed_before_its_maker_has_entered() -> None:
    young = an_observed_instance(offline_since=NOW, age=timedelta(seconds=3))

    planned = plan(young, grace=timedelta())

    assert planned == UnseenPlan((), NOW + timedelta(seconds=7))


def test_a_mark_is_removed_when_a_node_sees_the_device_again() -> None:
    observed = an_observed_instance(NODE_A, offline_since=NOW - 9 * MINUTE)

    assert plan(observed) == UnseenPlan((mark(observed.slots, None),), None)


@pytest.mark.parametrize("value", ["node-a", "C:x:node-b", "nonsense!"])
def test_it_stays_while_a_slot_is_used(value: str) -> None:
    observed = an_observed_instance(
        offline_since=NOW - timedelta(days=9), usage={f"{CAMERA_1}-0": value}
    )

    assert plan(observed) == NOTHING


@pytest.mark.parametrize("claimed", [frozenset({CAMERA_1}), None])
def test_it_stays_while_a_claim_has_it_or_may_have_it(claimed: frozenset[str] | None) -> None:
    observed = an_observed_instance(offline_since=NOW - timedelta(days=9))

    assert plan(observed, claimed=claimed) == NOTHING
    assert plan(observed, claimed=frozenset({"another"})) == deleted(observed)


def test_properties_are_kept_of_shared_ones_only() -> None:
    properties = {"URL": "rtsp://x"}

    assert an_observed_instance(NODE_A, brokerProperties=properties).properties == properties
    assert an_observed_instance(NODE_A, label=NODE_A, brokerProperties=properties).properties == {}


def test_an_empty_slot_and_a_key_of_no_slot_hold_nothing() -> None:
    usage = {f"{CAMERA_1}-0": "", "other-0": "node-a"}
    observed = an_observed_instance(offline_since=NOW - timedelta(days=9), usage=usage)

    assert plan(observed) == deleted(observed)


def test_names_of_nodes_that_are_gone_are_taken_out() -> None:
    observed = an_observed_instance(NODE_A, NODE_B)

    planned = plan(observed, existing=[NODE_A], gone=[NODE_B])

    assert planned.decisions == (keep_nodes(observed.slots, frozenset({NODE_A})),)


def test_a_local_instance_goes_with_its_node() -> None:
    observed, seen = an_observed_instance(label=NODE_B), an_observed_instance(NODE_B, label=NODE_B)

    assert plan(observed, existing=[NODE_A]) == deleted(observed)
    assert plan(observed, seen, existing=[NODE_A, NODE_B]) == NOTHING


def test_what_no_driver_of_ours_made_is_left_alone() -> None:
    assert plan(an_observed_instance(label=None), existing=[]) == NOTHING


def test_an_edit_that_breaks_a_configuration_takes_nothing_away() -> None:
    observed = an_observed_instance(offline_since=NOW - timedelta(days=9))
    others = Surroundings(
        configurations={ConfigurationName("other"): a_configuration("other")},
        existing=[],
        gone=[NODE_A],
        claimed=(),
    )

    assert plan_unseen([observed], others, now=NOW) == NOTHING


@pytest.mark.parametrize("odd", ["", "soon", "2026-11-21T12:00:00"])
def test_a_mark_of_no_sense_is_written_anew(odd: str) -> None:
    observed = an_observed_instance(offline_since=odd)

    assert plan(observed).decisions == (mark(observed.slots, NOW),)


@pytest.mark.parametrize("deleted", [{}, {"deletionTimestamp": "2026-11-21T12:00:00Z"}])
def test_what_holds_a_free_instance_is_let_go(deleted: dict[str, str]) -> None:
    finalizers = {"finalizers": ["other", SLOTS_FINALIZER], **deleted}
    unused = an_observed_instance(NODE_A, metadata=finalizers, usage={f"{CAMERA_1}-0": ""})
    used = an_observed_instance(NODE_A, metadata=finalizers, usage={f"{CAMERA_1}-0": "node-a"})

    assert plan(unused, used).decisions == (free(unused.slots),)
    assert free(unused.slots).patch["metadata"]["finalizers"] == ["other"]


def test_patches_name_the_version_they_were_decided_from() -> None:
    slots = an_observed_instance(NODE_A, NODE_B).slots
    version = {"uid": slots.uid, "resourceVersion": slots.resource_version}

    assert mark(slots, NOW).patch == {
        "metadata": {**version, "annotations": {OFFLINE_SINCE: "2026-11-21T12:00:00+00:00"}}
    }
    assert keep_nodes(slots, frozenset({NODE_B})).patch == {
        "metadata": version,
        "spec": {"nodes": [NODE_B]},
    }
    written = an_observed_instance(offline_since=NOW.isoformat())
    assert written.offline_since == NOW
