"""Devices that have to agree, and all devices of a node: who goes for a pod that asks for such."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.placement.node_fit import MOST_VARIANTS
from scheduler_plugin.reclaiming.targets import Decision, InProgress, Targets
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_slice,
    put,
)
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    Cluster,
    a_device,
    a_node_object,
    a_slice_object,
)
from tests.scheduler_plugin.reclaiming.test_devices import a_cluster, choices, use, waiting

NUMA = "moorage.dev/numa"
MATCH = [{"matchAttribute": NUMA}]
QUEUES = [a_queue("mine", onvif=(9, -1)), a_queue("robots", onvif=(0, -1))]


def on_numa(name: str, value: Any, kind: str = "int", **fields: Any) -> dict[str, Any]:
    return a_device(name, attributes={"numa": {kind: value}}, **fields)


def wants(
    requests: list[Any], *objects: Any, devices: Any, constraints: Any = MATCH, **options: Any
) -> Cluster:
    slices = [a_slice_object(*devices), *options.pop("slices", ())]
    pods = [*objects, waiting(requests=requests)]
    cluster = a_cluster(*pods, slices=slices, queues=options.pop("queues", QUEUES))
    for number, found in enumerate(slices):
        # What all of a class costs at most is known by then.
        names = [
            ("onvif", d if isinstance(d, str) else d["name"]) for d in found["spec"]["devices"]
        ]
        put(cluster.world, a_slice(f"s{number}", *names, nodeName=found["spec"]["nodeName"]))
    cluster.requests, cluster.constraints = {"w": requests}, constraints
    return cluster


def said(cluster: Cluster) -> str:
    decision: Decision = cluster.decide()
    assert isinstance(decision, NoCandidates), decision
    assert decision.unmet == "mine"
    return decision.sentence


# Devices that agree.

ONE_FREE = [on_numa("free", 1), on_numa("d1", 0), on_numa("d2", 1)]
OLD = "2026-11-21T11:00:00Z"
TWO_USED = [use("robots", "r1", on="d1"), use("robots", "r2", on="d2", since=OLD)]


@pytest.mark.parametrize(
    "requests", [[a_request(count=2)], [a_request(name="a"), a_request(name="b")]]
)
@pytest.mark.parametrize("attribute", [NUMA, "dra.example.com/numa"])
def test_the_one_goes_whose_device_agrees_with_the_one_that_is_free(
    requests: Any, attribute: str
) -> None:
    """The other would be the first to go: it is the youngest."""
    devices = ONE_FREE
    if attribute != NUMA:
        found = [(d["name"], d["attributes"]["numa"]) for d in ONE_FREE]
        devices = [a_device(name, attributes={attribute: value}) for name, value in found]
    cluster = wants(requests, *TWO_USED, devices=devices)
    cluster.constraints = [{"matchAttribute": attribute}]

    decision = cluster.decide()

    assert isinstance(decision, Targets)
    assert [pod.name for pod in decision.pods] == ["r2"]
    assert {device.name for device, _ in decision.hold.devices} == {"free", "d2"}
    assert cluster.is_due(decision)


def test_of_those_that_are_free_two_have_to_agree() -> None:
    free = [on_numa("f1", 0), on_numa("f2", 1)]
    cluster = wants([a_request(count=2)], TWO_USED[0], devices=[*free, on_numa("d1", 1)])
    assert cluster.taken() == ["r1"]

    agree = wants([a_request(count=2)], TWO_USED[0], devices=[*ONE_FREE])

    assert isinstance(agree.decide(), InProgress)


@pytest.mark.parametrize(
    "other",
    [
        on_numa("d1", 0),
        on_numa("d1", True, "bool"),
        on_numa("d1", "1", "string"),
        on_numa("d1", "1.0.0", "version"),
        a_device("d1"),
        a_device("d1", attributes={"other.example.com/numa": {"int": 1}}),
    ],
)
def test_nobody_goes_for_a_device_that_does_not_agree(other: Any) -> None:
    devices = [on_numa("free", 1), other]

    assert wants([a_request(count=2)], TWO_USED[0], devices=devices).taken() == []


def test_what_is_no_single_value_agrees_with_nothing() -> None:
    devices = [on_numa("free", [1], "ints"), on_numa("d1", [1], "ints")]

    assert wants([a_request(count=2)], TWO_USED[0], devices=devices).taken() == []


def test_a_constraint_is_about_the_requests_that_it_names() -> None:
    requests = [a_request(name="a"), a_request(name="b"), a_request(name="c")]
    devices = [on_numa("d1", 0), on_numa("d2", 1), on_numa("d3", 0)]
    used = [*TWO_USED, use("robots", "r3", on="d3")]
    apart = [{"requests": ["a", "b"], "matchAttribute": NUMA}]

    assert wants(requests, *used, devices=devices, constraints=apart).taken() == ["r1", "r2", "r3"]
    assert wants(requests, *used, devices=devices).taken() == []


def test_one_that_is_asked_for_alone_has_to_have_the_attribute() -> None:
    cluster = wants([a_request()], *TWO_USED, devices=[on_numa("d1", 0), a_device("d2")])

    assert cluster.taken() == ["r1"]


def test_a_constraint_may_be_about_one_alternative() -> None:
    model = "device.attributes['moorage.dev'].numa == "
    requests = [*choices(f"{model}0", f"{model}1"), a_request(name="b")]
    devices = [on_numa("free", 1), on_numa("d1", 0), on_numa("d2", 1)]
    of_one = [{"requests": ["req/x0", "b"], "matchAttribute": NUMA}]

    assert wants(requests, *TWO_USED, devices=devices).taken() == ["r2"]
    assert wants(requests, *TWO_USED, devices=devices, constraints=of_one).taken() == ["r1"]


def test_several_constraints_hold_at_a_time() -> None:
    def both(name: str, numa: int, root: str) -> Any:
        return a_device(name, attributes={"numa": {"int": numa}, "root": {"string": root}})

    constraints = [*MATCH, {"matchAttribute": "moorage.dev/root"}]
    devices = [both("free", 1, "a"), both("d1", 1, "b"), both("d2", 1, "a")]

    cluster = wants([a_request(count=2)], *TWO_USED, devices=devices, constraints=constraints)

    assert cluster.taken() == ["r2"]


def test_what_constraints_demand_of_one_claim_they_do_not_of_another() -> None:
    cluster = wants([a_request()], *TWO_USED, devices=ONE_FREE[1:])
    pod = a_pod("w", queue="mine", claims=["w", "v"], status=UNSCHEDULABLE)
    put(cluster.world, a_claim("v"), pod)

    assert cluster.taken() == ["r1", "r2"]


def test_so_many_values_that_not_all_are_tried_are_in_doubt() -> None:
    half = MOST_VARIANTS // 2
    devices = [
        a_device(f"d{n}", attributes={"numa": {"int": n % half}, "root": {"int": n % (half - 1)}})
        for n in range(MOST_VARIANTS)
    ]
    used = [use("robots", "r1", on="d1")]
    requests = [a_request(name=name) for name in "abcd"]
    constraints = [
        {"requests": ["a", "b"], "matchAttribute": NUMA},
        {"requests": ["c", "d"], "matchAttribute": "moorage.dev/root"},
    ]

    cluster = wants(requests, *used, devices=devices, constraints=constraints)

    assert "its constraints allow more than 256 combinations of values" in said(cluster)


def test_that_devices_differ_is_assumed() -> None:
    differ = [{"distinctAttribute": NUMA}]
    cluster = wants([a_request(count=2)], *TWO_USED, devices=ONE_FREE, constraints=differ)

    assert len(cluster.taken()) == 1


# All devices.

ALL = [a_request(allocationMode="All")]


def test_all_that_would_do_are_taken_on_one_node() -> None:
    cluster = wants(ALL, *TWO_USED, devices=["free", "d1", "d2"], constraints=[])

    decision = cluster.decide()

    assert isinstance(decision, Targets)
    assert sorted(pod.name for pod in decision.pods) == ["r1", "r2"]
    assert {device.name for device, _ in decision.hold.devices} == {"free", "d1", "d2"}
    assert cluster.is_due(decision)


def test_where_all_are_free_nobody_goes() -> None:
    far = [a_slice_object("far1", node="far")]
    cluster = wants(ALL, *TWO_USED, devices=["d1", "d2"], constraints=[], slices=far)
    cluster.nodes["far"] = a_node_object("far")

    assert isinstance(cluster.decide(), InProgress)


def test_one_that_stays_keeps_all_from_the_pod() -> None:
    used = [TWO_USED[0], use("robots", "r2", on="d2", non_preemptible=True)]

    assert wants(ALL, *used, devices=["d1", "d2"], constraints=[]).taken() == []


def test_those_that_would_not_do_are_nobodys_concern() -> None:
    fine = "device.attributes['moorage.dev'].model == 'fine'"
    requests = [a_request(allocationMode="All", selectors=[{"cel": {"expression": fine}}])]
    devices = [a_device("d1", model="fine"), a_device("d2")]

    assert wants(requests, *TWO_USED, devices=devices, constraints=[]).taken() == ["r1"]


def test_of_shared_devices_all_that_have_room_are_enough() -> None:
    """As kube-scheduler does: those that are full are none of all."""
    shared = [a_device(f"d{n}", slots=1) for n in (1, 2)]
    used = [use("robots", f"r{n}", on=f"d{n}", slots=1) for n in (1, 2)]

    cluster = wants(ALL, *used, devices=shared, constraints=[])

    assert len(cluster.taken()) == 1
    free = wants(ALL, used[0], devices=shared, constraints=[])
    assert isinstance(free.decide(), InProgress)


def test_all_of_two_requests_are_not_the_same_devices() -> None:
    requests = [*ALL, a_request(name="one")]
    cluster = wants(requests, *TWO_USED, devices=["d1", "d2"], constraints=[])
    assert cluster.taken() == []


def test_of_more_than_a_claim_may_have_nobody_gets_all() -> None:
    devices = ["d1", *(f"f{n}" for n in range(32))]
    queues = [a_queue("mine", onvif=(40, -1)), a_queue("robots", onvif=(0, -1))]

    served = wants(ALL, TWO_USED[0], devices=devices[:-1], constraints=[], queues=queues)
    assert served.taken() == ["r1"]
    cluster = wants(ALL, TWO_USED[0], devices=devices, constraints=[], queues=queues)

    assert cluster.taken() == []


def test_all_that_have_to_agree_are_assumed_to() -> None:
    assert wants(ALL, *TWO_USED, devices=ONE_FREE).taken() == ["r1", "r2"]
