"""Revisions of bodies: they change with all that the object is made from."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from driver.brokers import bodies
from driver.brokers.bodies import Made, revision_of
from driver.brokers.workloads import Workloads
from tests.driver.brokers.broker_builders import (
    NODE_A,
    NODE_B,
    SERVICE_SPEC,
    a_container,
    a_device,
    a_job_spec,
    a_made_template,
    a_pod_spec,
    some_jobs,
    some_workloads,
)

QUEUE = {"kueue.x-k8s.io/queue-name": "vision"}


MADE: list[tuple[str, Callable[[Workloads], Made]]] = [
    ("pod", lambda wanted: bodies.pod(wanted, a_device(), NODE_A)),
    ("pod on DRA", lambda wanted: bodies.pod(wanted, a_device(is_dra=True), NODE_A)),
    ("template", lambda wanted: a_made_template(wanted, a_device(is_dra=True))),
]


@pytest.mark.parametrize("made", [pytest.param(made, id=name) for name, made in MADE])
def test_the_revision_follows_the_specification_and_not_the_generation(
    made: Callable[[Workloads], Made],
) -> None:
    before = made(some_workloads()).revision

    assert before
    assert made(some_workloads(generation=4, most=1, uid="other")).revision == before
    assert made(some_workloads(labels=QUEUE)).revision != before
    assert made(some_workloads(pod=a_pod_spec("2"))).revision != before


def test_the_revision_of_a_job_does_not_follow_the_generation() -> None:
    before, later = (bodies.job(some_jobs(generation=n), a_device()) for n in (3, 4))

    assert later.name != before.name
    assert later.revision == before.revision
    assert bodies.job(some_jobs(labels=QUEUE), a_device()).revision != before.revision
    other = some_jobs(job=a_job_spec(backoffLimit=2))
    assert bodies.job(other, a_device()).revision != before.revision


def test_the_revision_of_a_pod_follows_its_image_and_its_node() -> None:
    device, other = a_device(), some_workloads(pod={"containers": [a_container(image="broker:2")]})
    before = bodies.pod(some_workloads(), device, NODE_A).revision

    assert bodies.pod(other, device, NODE_A).revision != before
    assert bodies.pod(some_workloads(), device, NODE_B).revision != before


def test_the_revision_of_a_service_follows_its_spec() -> None:
    before, later = (
        bodies.instance_service(some_workloads(instance_service=spec), a_device())
        for spec in (SERVICE_SPEC, {**SERVICE_SPEC, "type": "NodePort"})
    )

    assert later.revision != before.revision


def test_the_revision_is_read_from_the_annotation() -> None:
    made = bodies.pod(some_workloads(), a_device(), NODE_A)

    assert revision_of(made.body["metadata"]) == made.revision
    assert revision_of({"name": "made-by-akri"}) == ""
    assert revision_of({"annotations": {"other": "x"}}) == ""
