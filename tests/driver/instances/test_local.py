"""Instances of a node whose devices went away: kept for a while, then removed."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from driver.api import OFFLINE_SINCE, ConfigurationName, InstanceName
from driver.instances.instances import instance_of
from driver.instances.local import InstancePlan, Retention, plan_instances
from driver.instances.stored.objects import (
    ApplyInstance,
    DeleteInstance,
    StoredInstance,
    instance_body,
    stored_instance,
)
from tests.driver.builders import NODE, NOW, a_configuration, a_device

GRACE = timedelta(minutes=5)
LOOP = ConfigurationName("loop")


def a_body() -> Mapping[str, Any]:
    configuration = a_configuration(LOOP)
    return instance_body(instance_of(a_device(), configuration, NODE), configuration, NODE)


def as_stored(body: Mapping[str, Any], usage: Mapping[str, str] | None = None) -> StoredInstance:
    """What the API server would return after this body was applied."""
    stored = copy.deepcopy(dict(body))
    stored["metadata"] |= {"uid": "uid-1", "resourceVersion": "7"}
    stored["spec"]["deviceUsage"] = dict(usage or {})
    return stored_instance(stored)


def plan(
    stored: StoredInstance,
    *wanted: Mapping[str, Any],
    now: datetime = NOW,
    held: Collection[InstanceName] = (),
    grace: timedelta = GRACE,
) -> InstancePlan:
    return plan_instances(wanted, [stored], Retention(held=held, graces={LOOP: grace}, now=now))


def away() -> StoredInstance:
    """As it is written when its device goes, at NOW."""
    (decision,) = plan(as_stored(a_body())).decisions
    assert isinstance(decision, ApplyInstance)
    return as_stored(decision.body)


def test_it_is_on_no_node_and_marked_with_the_time() -> None:
    found = plan(as_stored(a_body()))

    (decision,) = found.decisions
    assert isinstance(decision, ApplyInstance)
    assert decision.body["spec"]["nodes"] == []
    assert decision.body["metadata"]["annotations"][OFFLINE_SINCE] == NOW.isoformat()
    assert found.recheck_at == NOW + GRACE
    assert away().offline_since == NOW


def test_it_stays_until_its_grace_is_over_whoever_looks() -> None:
    early, late = NOW + GRACE - timedelta(seconds=1), NOW + GRACE

    assert plan(away(), now=early) == InstancePlan((), recheck_at=late)
    assert plan(away(), now=late) == InstancePlan(
        (DeleteInstance("default", away().name, "uid-1", "7"),), recheck_at=None
    )


def test_when_it_is_back_it_is_the_same_without_the_mark() -> None:
    body = a_body()

    assert plan(away(), body, now=NOW + timedelta(days=1)).decisions == (ApplyInstance(body),)
    assert OFFLINE_SINCE not in body["metadata"]["annotations"]


def test_the_grace_of_one_that_is_used_counts_from_when_it_went() -> None:
    later = NOW + timedelta(days=1)
    used = replace(away(), slots_used=True)

    assert plan(used, now=later) == InstancePlan((), recheck_at=None)
    assert plan(away(), now=later, held={away().name}) == InstancePlan((), recheck_at=None)
    assert isinstance(plan(away(), now=later).decisions[0], DeleteInstance)


def test_a_grace_that_is_given_while_it_is_away_counts_from_then() -> None:
    used = as_stored({**a_body(), "spec": {**a_body()["spec"], "nodes": []}}, {"x-0": NODE})

    assert plan(used, grace=timedelta()).decisions == ()
    (decision,) = plan(used).decisions
    assert isinstance(decision, ApplyInstance)
    assert decision.body["metadata"]["annotations"][OFFLINE_SINCE] == NOW.isoformat()


def test_without_a_grace_it_goes_at_once() -> None:
    assert isinstance(plan(as_stored(a_body()), grace=timedelta()).decisions[0], DeleteInstance)
