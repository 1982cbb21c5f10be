"""Plans for one Instance: its Pods, its Job, and the template of their claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from driver.brokers import bodies
from driver.brokers.plans import Plan
from driver.brokers.stored import Phase
from driver.brokers.workloads import Workloads
from tests.driver.brokers.broker_builders import (
    NODE_A,
    NODE_B,
    NODE_C,
    ONE_NODE,
    a_broker,
    a_device,
    a_job,
    a_job_spec,
    a_pod_spec,
    a_template,
    names_of,
    planned,
    some_jobs,
    some_workloads,
)

PODS_WANTED, JOBS_WANTED = some_workloads(), some_jobs()
QUEUE = {"kueue.x-k8s.io/queue-name": "vision"}
LATER = some_workloads(pod=a_pod_spec("2"))
LATER_JOBS = some_jobs(job=a_job_spec("2"), generation=4)
AKRIS: dict[str, Any] = {"revision": ""}
ON_DRA = a_device(nodes=(NODE_A,), is_dra=True)


def on_a(wanted: Workloads = PODS_WANTED) -> bodies.Made:
    return bodies.pod(wanted, ONE_NODE, NODE_A)


def test_a_pod_comes_to_each_node_that_sees_the_device() -> None:
    plan = planned(PODS_WANTED, a_device())

    made = tuple(bodies.pod(PODS_WANTED, a_device(), node) for node in (NODE_A, NODE_B))
    assert plan == Plan(creates=made)
    assert plan.makes


def test_no_more_pods_come_than_the_device_has_slots() -> None:
    plan = planned(PODS_WANTED, a_device(capacity=1))

    assert plan == Plan(creates=(on_a(),))


@pytest.mark.parametrize("phase", ["Pending", "Running"])
@pytest.mark.parametrize("of_akri", [{}, AKRIS])
def test_a_pod_that_is_as_wanted_stays(phase: Phase, of_akri: dict[str, Any]) -> None:
    broker = a_broker(PODS_WANTED, ONE_NODE, phase=phase, **of_akri)

    assert planned(PODS_WANTED, ONE_NODE, broker) == Plan()


def test_a_pod_that_was_renamed_since_stays() -> None:
    broker = a_broker(PODS_WANTED, ONE_NODE, name="of-a-local-device")

    assert planned(PODS_WANTED, ONE_NODE, broker) == Plan()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"phase": "Ended"}, id="ended"),
        pytest.param({"phase": "Ended", **AKRIS}, id="Akri's own ended"),
        pytest.param({"revision": "other"}, id="made from another specification"),
        pytest.param({"owner": "other"}, id="made for another Instance of the name"),
        pytest.param({"owner": "other", **AKRIS}, id="made by Akri for another Instance"),
    ],
)
def test_a_pod_that_is_not_as_wanted_is_deleted_and_made_anew_once_it_is_gone(
    change: dict[str, Any],
) -> None:
    broker = a_broker(PODS_WANTED, ONE_NODE, **change)

    assert planned(PODS_WANTED, ONE_NODE, broker) == Plan(deletes=(broker,))
    assert planned(PODS_WANTED, ONE_NODE, replace(broker, deleted=True)) == Plan()
    assert planned(PODS_WANTED, ONE_NODE) == Plan(creates=(on_a(),))


@pytest.mark.parametrize("wanted", [LATER, some_workloads(labels=QUEUE)])
def test_a_changed_specification_makes_pods_anew(wanted: Workloads) -> None:
    broker = a_broker(PODS_WANTED, ONE_NODE)

    assert planned(wanted, ONE_NODE, broker) == Plan(deletes=(broker,))


def test_a_new_generation_alone_changes_nothing() -> None:
    later = some_workloads(generation=4, configuration_service={"ports": []})

    assert planned(later, ONE_NODE, a_broker(PODS_WANTED, ONE_NODE)) == Plan()


def test_a_pod_leaves_a_node_that_no_longer_sees_the_device() -> None:
    brokers = [a_broker(PODS_WANTED, a_device(), node) for node in (NODE_A, NODE_B)]

    plan = planned(PODS_WANTED, ONE_NODE, *brokers)

    assert plan == Plan(deletes=(brokers[1],))


def test_a_node_takes_the_place_of_one_that_left() -> None:
    device = a_device(capacity=1, nodes=(NODE_B,))
    broker = a_broker(PODS_WANTED, a_device(), NODE_A)

    plan = planned(PODS_WANTED, device, broker)

    assert plan == Plan((broker,), (bodies.pod(PODS_WANTED, device, NODE_B),))


def test_a_raised_capacity_adds_pods() -> None:
    broker = a_broker(PODS_WANTED, a_device(), NODE_B)

    plan = planned(PODS_WANTED, a_device(capacity=2), broker)

    assert plan == Plan(creates=(on_a(),))


@pytest.mark.parametrize(
    ("phases", "ended"),
    [
        (("Pending", "Running", "Pending"), [NODE_C, NODE_A]),
        (("Running", "Running", "Pending"), [NODE_C, NODE_B]),
        (("Pending", "Pending", "Pending"), [NODE_B, NODE_C]),
    ],
)
def test_a_lowered_capacity_ends_pods_that_wait_first(
    phases: tuple[Phase, ...], ended: list[str]
) -> None:
    nodes = (NODE_A, NODE_B, NODE_C)
    before = a_device(capacity=3, nodes=nodes)
    pods = [a_broker(PODS_WANTED, before, node) for node in nodes]
    found = [replace(pod, phase=phase) for pod, phase in zip(pods, phases, strict=True)]

    plan = planned(PODS_WANTED, replace(before, capacity=1), *found)

    assert {pod.node for pod in plan.deletes} == set(ended)
    assert plan == Plan(deletes=plan.deletes)


def test_no_pod_comes_while_the_configuration_has_too_many() -> None:
    broker = a_broker(PODS_WANTED, a_device(), NODE_A)

    assert planned(PODS_WANTED, a_device(), broker, may_create=False) == Plan()


def test_a_pod_that_is_made_anew_waits_and_the_plan_says_how_long() -> None:
    made = [bodies.pod(PODS_WANTED, a_device(), node) for node in (NODE_A, NODE_B)]

    one = planned(PODS_WANTED, a_device(), waits={made[0].name: 4.0})
    both = planned(PODS_WANTED, a_device(), waits={made[0].name: 4.0, made[1].name: 2.0})

    assert one == Plan(creates=(made[1],), recheck_seconds=4.0)
    assert both == Plan(recheck_seconds=2.0)


def test_what_stays_or_may_not_come_is_not_waited_for() -> None:
    waits = {on_a().name: 4.0}

    assert planned(PODS_WANTED, ONE_NODE, a_broker(PODS_WANTED, ONE_NODE), waits=waits) == Plan()
    assert planned(PODS_WANTED, ONE_NODE, waits=waits, may_create=False) == Plan()


def test_a_name_that_is_taken_is_not_created() -> None:
    terminating = a_broker(PODS_WANTED, ONE_NODE, deleted=True)
    elsewhere = a_broker(PODS_WANTED, ONE_NODE, node=NODE_A, owner="other", name=on_a().name)

    assert planned(PODS_WANTED, ONE_NODE, terminating, waits={on_a().name: 4.0}) == Plan()
    assert planned(PODS_WANTED, ONE_NODE, elsewhere) == Plan(deletes=(elsewhere,))


def test_two_pods_for_one_node_become_one() -> None:
    brokers = [a_broker(PODS_WANTED, ONE_NODE, uid=uid, name=uid) for uid in ("one", "two")]

    plan = planned(PODS_WANTED, ONE_NODE, *brokers)

    assert len(plan.deletes) == 1
    assert not plan.creates


@pytest.mark.parametrize(
    "wanted", [None, some_workloads(pod=None, configuration_service={"ports": []})]
)
def test_all_is_deleted_once_nothing_is_wanted(wanted: Workloads | None) -> None:
    found = [
        a_broker(PODS_WANTED, ON_DRA, **AKRIS),
        a_job(JOBS_WANTED, ON_DRA),
        a_template(PODS_WANTED, ON_DRA),
    ]

    plan = planned(wanted, ON_DRA, *found, replace(found[0], uid="terminating", deleted=True))

    assert {each.uid for each in plan.deletes} == {each.uid for each in found}
    assert not plan.makes


def test_the_template_comes_before_the_pods_that_name_it() -> None:
    plan = planned(PODS_WANTED, ON_DRA)

    template = bodies.claim_template(PODS_WANTED, ON_DRA)
    assert plan.creates == (template, bodies.pod(PODS_WANTED, ON_DRA, NODE_A))


def test_a_template_that_is_as_wanted_stays() -> None:
    found = a_template(PODS_WANTED, ON_DRA), a_broker(PODS_WANTED, ON_DRA)

    assert planned(PODS_WANTED, ON_DRA, *found) == Plan()


@pytest.mark.parametrize("terminating", [False, True])
@pytest.mark.parametrize("wanted", [PODS_WANTED, JOBS_WANTED])
def test_nothing_names_a_stale_template_before_it_is_gone(
    wanted: Workloads, *, terminating: bool
) -> None:
    for change in ({"revision": "other"}, {"owner": "other"}, {}):
        stale = replace(a_template(wanted, ON_DRA, **change), deleted=terminating)
        if not terminating and not change:
            continue

        plan = planned(wanted, ON_DRA, stale)

        assert plan == Plan(deletes=(stale,))


def test_no_template_is_made_while_there_would_be_too_many_brokers() -> None:
    template = a_template(PODS_WANTED, ON_DRA)

    assert planned(PODS_WANTED, ON_DRA, may_create=False) == Plan()
    assert planned(PODS_WANTED, ON_DRA, template, may_create=False) == Plan()


def test_a_template_goes_with_the_last_placeholder() -> None:
    without = some_workloads(pod={"containers": [{"name": "broker"}]})
    template = a_template(PODS_WANTED, ON_DRA)

    assert planned(without, ON_DRA, template).deletes == (template,)
    assert names_of(planned(without, ON_DRA).creates) == [on_a().name]
