"""Services come with the first Pod that runs, and go with the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from driver.brokers import bodies
from driver.brokers.bodies import Made
from driver.brokers.plans import Plan, plan_configuration, plan_device
from driver.brokers.stored import Stored
from driver.brokers.workloads import Workloads
from tests.driver.brokers.broker_builders import (
    NODE_A,
    NODE_B,
    SERVICE_SPEC,
    a_broker,
    a_device,
    as_stored,
    some_workloads,
)

WANTED = some_workloads(instance_service=SERVICE_SPEC, configuration_service=SERVICE_SPEC)
NODE_PORT = {**SERVICE_SPEC, "type": "NodePort"}
CHANGED = replace(WANTED, instance_service=NODE_PORT, configuration_service=NODE_PORT)
WITHOUT = replace(WANTED, instance_service=None, configuration_service=None)
DEVICE = a_device()
RUNNING = a_broker(WANTED, DEVICE, NODE_A)
PENDING = a_broker(WANTED, DEVICE, NODE_B, "Pending")
ENDED = a_broker(WANTED, DEVICE, NODE_A, "Ended")
TERMINATING = replace(RUNNING, deleted=True)


def of_instance(wanted: Workloads | None, services: list[Stored], pods: list[Stored]) -> Plan:
    """What a plan for the Instance says about Services."""
    plan = plan_device(wanted, DEVICE, [*services, *pods], lambda _: 60.0)
    deletes = tuple(each for each in plan.deletes if each in services)
    return Plan(deletes, applies=plan.applies)


def of_configuration(wanted: Workloads | None, services: list[Stored], pods: list[Stored]) -> Plan:
    return plan_configuration(wanted, services, pods)


def instances(wanted: Workloads) -> Made:
    return bodies.instance_service(wanted, DEVICE)


BOTH = pytest.mark.parametrize(
    ("plan", "made"),
    [
        pytest.param(of_instance, instances, id="Instance"),
        pytest.param(of_configuration, bodies.configuration_service, id="Configuration"),
    ],
)
Planning = Callable[[Workloads | None, list[Stored], list[Stored]], Plan]
Making = Callable[[Workloads], Made]


@BOTH
def test_a_service_comes_with_the_first_pod_that_runs(plan: Planning, made: Making) -> None:
    assert plan(WANTED, [], []) == Plan()
    assert plan(WANTED, [], [PENDING]) == Plan()
    assert plan(WANTED, [], [ENDED, TERMINATING]) == Plan()
    assert plan(WANTED, [], [PENDING, RUNNING]) == Plan(applies=(made(WANTED),))


@BOTH
def test_a_service_stays_until_no_pod_is_left(plan: Planning, made: Making) -> None:
    service = as_stored(made(WANTED))

    assert plan(WANTED, [service], [RUNNING]) == Plan()
    assert plan(WANTED, [service], [PENDING]) == Plan()
    assert plan(WANTED, [service], [ENDED]) == Plan()
    assert plan(WANTED, [service], [TERMINATING]) == Plan(deletes=(service,))
    assert plan(WANTED, [service], []) == Plan(deletes=(service,))


@BOTH
def test_a_changed_service_is_applied(plan: Planning, made: Making) -> None:
    service = as_stored(made(WANTED))

    assert plan(CHANGED, [service], [PENDING]) == Plan(applies=(made(CHANGED),))
    assert plan(CHANGED, [replace(service, deleted=True)], [RUNNING]) == Plan()


@BOTH
def test_a_service_that_akri_made_stays_as_it_is(plan: Planning, made: Making) -> None:
    service = as_stored(made(WANTED), revision="")

    assert plan(CHANGED, [service], [RUNNING]) == Plan()


@BOTH
@pytest.mark.parametrize("wanted", [None, WITHOUT])
def test_a_service_that_is_not_wanted_goes(
    plan: Planning, made: Making, wanted: Workloads | None
) -> None:
    service = as_stored(made(WANTED))

    assert plan(wanted, [service], [RUNNING]) == Plan(deletes=(service,))
    assert plan(wanted, [replace(service, deleted=True)], [RUNNING]) == Plan()


@BOTH
def test_a_service_of_another_name_goes(plan: Planning, made: Making) -> None:
    service = as_stored(made(WANTED))
    other = replace(service, name="other", uid="other")

    assert plan(WANTED, [other, service], [RUNNING]) == Plan(deletes=(other,))
