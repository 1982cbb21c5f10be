"""The condition `BrokersReady`: every reason, with its sentence."""

from __future__ import annotations

from typing import Any

import pytest

from driver.api import Problem
from driver.brokers.devices import Device
from driver.brokers.states import (
    AKRI_RUNS,
    BROKERS_READY,
    Blocked,
    brokers_condition,
    brokers_of,
    invalid,
    not_allowed,
    too_many,
)
from driver.brokers.stored import Stored
from driver.brokers.workloads import Workloads
from driver.configurations.conditions import LONGEST_MESSAGE, Condition
from tests.driver.brokers.broker_builders import (
    NODE_A,
    NODE_B,
    a_broker,
    a_device,
    a_job,
    a_template,
    count_of,
    some_jobs,
    some_workloads,
)

PODS_WANTED, JOBS_WANTED = some_workloads(), some_jobs()
DEVICE = a_device()


def a_condition(
    *found: Stored,
    wanted: Workloads = PODS_WANTED,
    devices: tuple[Device, ...] = (DEVICE,),
    refusals: tuple[str, ...] = (),
) -> Condition:
    condition = brokers_condition(wanted, count_of(*devices), found, refusals)
    assert condition.type == BROKERS_READY
    return condition


def a_waiting_broker(number: int, waits: str, **overrides: Any) -> Stored:
    return a_broker(PODS_WANTED, DEVICE, phase="Pending", uid=str(number), waits=waits, **overrides)


def said(condition: Condition) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message


def test_akris_controller_is_named_with_the_way_to_remove_it() -> None:
    assert said(AKRI_RUNS.condition) == (
        "False",
        "AkriControllerRuns",
        "Akri's own controller runs in this cluster and makes brokers, so Moorage makes none."
        " Remove it: with Akri's chart, set controller.enabled=false.",
    )


def test_a_namespace_that_is_not_listed_is_named() -> None:
    blocked = not_allowed("plant", {"other"})

    assert blocked is not None
    assert said(blocked.condition) == (
        "False",
        "NotAllowed",
        "Brokers, Jobs and Services are not made in namespace plant. An administrator lists the"
        " namespaces: brokers.namespaces in the chart's values.",
    )


@pytest.mark.parametrize("allowed", [{"plant"}, {"*"}, {"other", "plant"}])
def test_a_namespace_that_is_listed_may_have_brokers(allowed: set[str]) -> None:
    assert not_allowed("plant", allowed) is None


def test_problems_are_said_with_their_paths() -> None:
    problems = [Problem("spec.a", "It is wrong."), Problem("spec.b", "It is wrong, too.")]

    assert invalid(problems) == Blocked("Invalid", "spec.a: It is wrong. spec.b: It is wrong, too.")
    assert invalid([]) is None


def test_more_brokers_than_a_configuration_may_have_are_counted() -> None:
    wanted = some_workloads(most=3)
    devices = (a_device("a"), a_device("b"))

    assert too_many(wanted, count_of(devices[0])) is None
    assert said(a_condition(wanted=wanted, devices=devices, refusals=("no room",))) == (
        "False",
        "TooManyBrokers",
        "4 brokers would run, and 3 are the most; no further one is made. If so many are meant,"
        " set spec.maxBrokers: 4.",
    )


def test_as_many_as_are_allowed_are_not_too_many() -> None:
    one = count_of(a_device())

    assert too_many(some_workloads(most=2), one) is None
    assert too_many(some_jobs(most=1), one) is None
    assert too_many(some_jobs(most=0), one) is not None


@pytest.mark.parametrize(
    ("wanted", "device", "count"),
    [
        (PODS_WANTED, a_device(capacity=5), 2),
        (PODS_WANTED, a_device(capacity=1), 1),
        (PODS_WANTED, a_device(nodes=()), 0),
        (JOBS_WANTED, a_device(capacity=5), 1),
        (some_workloads(pod=None), a_device(), 0),
    ],
)
def test_brokers_of_devices_are_counted(wanted: Workloads, device: Device, count: int) -> None:
    assert brokers_of(wanted, count_of(device)) == count
    assert brokers_of(wanted, count_of(device, device)) == 2 * count


def test_refusals_of_the_api_server_are_said() -> None:
    assert said(a_condition(refusals=("exceeded quota", "bad image"))) == (
        "False",
        "Refused",
        "The API server refuses to make some of them: bad image, exceeded quota",
    )


def test_all_brokers_run() -> None:
    pods = [a_broker(PODS_WANTED, DEVICE, node) for node in (NODE_A, NODE_B)]
    template = a_template(PODS_WANTED, a_device(is_dra=True))

    assert said(a_condition(*pods, template)) == ("True", "AllRun", "2 brokers run.")
    assert said(a_condition(devices=())) == ("True", "AllRun", "0 brokers run.")


def test_a_terminating_broker_does_not_run() -> None:
    pods = [
        a_broker(PODS_WANTED, DEVICE, NODE_A),
        a_broker(PODS_WANTED, DEVICE, NODE_B, deleted=True),
    ]

    assert said(a_condition(*pods)) == ("False", "Waiting", "1 of 2 brokers run.")


def test_brokers_that_wait_are_counted_for_each_reason() -> None:
    running = a_broker(PODS_WANTED, DEVICE)
    waiting = [
        a_waiting_broker(1, "Queue vision has no room."),
        a_waiting_broker(2, "No node has it"),
        a_waiting_broker(3, "Queue vision has no room."),
        a_waiting_broker(4, ""),
        a_waiting_broker(5, "It goes.", deleted=True),
    ]

    found = a_condition(running, *waiting, devices=tuple(a_device(name) for name in "abc"))

    assert said(found) == (
        "False",
        "Waiting",
        "1 of 6 brokers run. 2 brokers wait: Queue vision has no room. 1 broker waits: No node has"
        " it.",
    )


def test_no_more_than_three_reasons_are_said() -> None:
    waiting = [a_waiting_broker(number, f"Reason {number}.") for number in range(5)]

    message = a_condition(*waiting).message

    assert message.count("Reason") == 3


def test_a_message_is_no_longer_than_the_api_server_takes() -> None:
    long = "x" * LONGEST_MESSAGE

    assert len(a_condition(a_waiting_broker(1, long)).message) == LONGEST_MESSAGE
    assert len(a_condition(refusals=(long,)).message) == LONGEST_MESSAGE
    blocked = invalid([Problem("spec", long)])
    assert blocked is not None
    assert len(blocked.condition.message) == LONGEST_MESSAGE


def test_jobs_are_counted_and_those_that_ended() -> None:
    jobs = [
        a_job(JOBS_WANTED, DEVICE, uid="1"),
        a_job(JOBS_WANTED, DEVICE, uid="2", phase="Ended"),
        a_job(JOBS_WANTED, DEVICE, uid="3", deleted=True),
        a_broker(PODS_WANTED, DEVICE),
    ]

    assert said(a_condition(*jobs, wanted=JOBS_WANTED)) == (
        "True",
        "JobsMade",
        "2 Jobs exist, 1 of them ended.",
    )
    assert a_condition(jobs[0], wanted=JOBS_WANTED).message == "1 Job exists, 0 of them ended."
    assert a_condition(wanted=JOBS_WANTED).message == "0 Jobs exist, 0 of them ended."


def test_one_broker_runs() -> None:
    one = a_device(nodes=(NODE_A,))

    assert a_condition(a_broker(PODS_WANTED, one), devices=(one,)).message == "1 broker runs."
