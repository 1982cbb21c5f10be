"""Devices and nodes for many pods that wait at one time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.targets import Decision, InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_pod_object,
    a_queue,
    a_request,
    pod_uid,
)
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    Cluster,
    a_device,
    a_node_object,
    a_slice_object,
)
from tests.scheduler_plugin.reclaiming.test_devices import a_cluster, use, waiting

QUEUES = [a_queue("mine", onvif=(9, -1)), a_queue("robots", onvif=(0, -1))]

VOLUME = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    ]
}


def served(cluster: Cluster, *names: str) -> list[Decision]:
    """One cycle for these pods."""
    placements, world = cluster.placements(NONE_EXCLUDED), cluster.world
    cycle = Cycle(world, NOW, NONE_EXCLUDED, placements)
    pods = (world.facts.pod(pod_uid(name)) for name in names)
    return [cycle.serve(pod) for pod in pods if pod is not None]


def gone(decisions: Sequence[Decision]) -> list[list[str]]:
    return [
        sorted(pod.name for pod in found.pods) if isinstance(found, Targets) else []
        for found in decisions
    ]


def full(nodes: int, each: int = 1) -> tuple[list[Any], list[Any]]:
    """Nodes whose devices robots have all of; slices and users."""
    slices = [a_slice_object(*(f"d{d}" for d in range(each)), node=f"n{n}") for n in range(nodes)]
    users = [
        use("robots", f"r{n}-{d}", on=f"d{d}", node=f"n{n}")
        for n in range(nodes)
        for d in range(each)
    ]
    return slices, users


def with_nodes(cluster: Cluster, nodes: int, **fields: Any) -> Cluster:
    cluster.nodes = {f"n{n}": a_node_object(f"n{n}", **fields) for n in range(nodes)}
    return cluster


def test_a_whole_line_gets_devices_in_one_cycle_each_another() -> None:
    slices, users = full(10)
    line = [f"w{n}" for n in range(9)]
    heads = [waiting(name=name) for name in line]
    cluster = with_nodes(a_cluster(*users, *heads, slices=slices, queues=QUEUES), 10)

    found = gone(served(cluster, *line))

    assert len({tuple(each) for each in found}) == 9
    assert all(len(each) == 1 for each in found)


def test_what_is_free_is_used_first_and_once() -> None:
    slices, users = full(3)
    heads = [waiting(name="w1"), waiting(name="w2")]
    cluster = with_nodes(a_cluster(*users[1:], *heads, slices=slices, queues=QUEUES), 3)

    first, second = served(cluster, "w1", "w2")

    assert isinstance(first, InProgress)
    assert isinstance(second, Targets)


def test_what_no_node_has_for_one_pod_keeps_nothing_from_those_behind_it() -> None:
    slices, users = full(2)
    elsewhere = {"nodeSelector": {"zone": "elsewhere"}}
    odd = a_pod("odd", queue="mine", claims=["odd"], status=UNSCHEDULABLE, spec=elsewhere)
    head = [a_claim("odd", requests=[a_request()]), odd]
    objects = [*users, head, waiting(name="w")]
    cluster = with_nodes(a_cluster(*objects, slices=slices, queues=QUEUES), 2)
    cluster.keeps_needs = True

    odd_one, other = served(cluster, "odd", "w")

    assert isinstance(odd_one, NoCandidates)
    assert isinstance(other, Targets)


def test_a_node_that_would_never_do_gives_nothing() -> None:
    slices, users = full(9)
    cluster = with_nodes(a_cluster(*users, waiting(name="w"), slices=slices, queues=QUEUES), 9)
    for number in range(8):
        cluster.pods[f"n{number}"] = [
            a_pod_object(f"daemon-{number}", node=f"n{number}", requests={"cpu": "4"})
        ]
    cluster.waiting = {"requests": {"cpu": "1"}}

    assert gone(served(cluster, "w")) == [["r8-0"]]


@pytest.mark.parametrize("spec", [VOLUME, SPREAD], ids=["volume", "spread"])
def test_what_is_not_modelled_is_assumed_to_fit(spec: dict[str, Any]) -> None:
    slices, users = full(1)
    cluster = with_nodes(a_cluster(*users, waiting(name="w"), slices=slices, queues=QUEUES), 1)
    cluster.waiting = {"spec": spec}

    assert gone(served(cluster, "w")) == [["r0-0"]]


@pytest.mark.parametrize("spec", [{}, SPREAD], ids=["nothing", "spread"])
def test_who_asks_for_what_is_not_looked_at_goes_alone_where_none_was_bound(
    spec: dict[str, Any],
) -> None:
    slices, users = full(2, each=2)
    line = [f"w{n}" for n in range(4)]
    heads = [waiting(name=name) for name in line]
    cluster = with_nodes(a_cluster(*users, *heads, slices=slices, queues=QUEUES), 2)
    cluster.waiting = {"spec": spec}

    found = served(cluster, *line)

    nodes = [each.hold.node for each in found if isinstance(each, Targets)]
    assert sorted(nodes) == (["n0", "n1"] if spec else ["n0", "n0", "n1", "n1"])
    if spec:
        assert isinstance(found[-1], NoCandidates)
        assert "on 2 nodes an equal pod is to be bound first" in found[-1].sentence


def test_several_devices_are_of_one_node_and_whoever_was_not_needed_stays() -> None:
    slices, users = full(3, each=2)
    head = waiting(name="w", requests=[a_request(count=2)])
    cluster = with_nodes(a_cluster(*users, head, slices=slices, queues=QUEUES), 3)

    (found,) = gone(served(cluster, "w"))

    assert len(found) == 2
    assert len({name.split("-")[0] for name in found}) == 1


def test_slots_that_are_left_are_shared_before_anybody_goes() -> None:
    slices = [a_slice_object(a_device("d0", slots=3), node="n0")]
    users = [use("robots", f"r{n}", on="d0", node="n0", slots=1) for n in range(2)]
    heads = [waiting(name=f"w{n}", slots=1) for n in range(3)]
    cluster = with_nodes(a_cluster(*users, *heads, slices=slices, queues=QUEUES), 1)

    first, *others = served(cluster, "w0", "w1", "w2")

    assert isinstance(first, InProgress)
    assert sorted(gone(others)) == [["r0"], ["r1"]]


def test_nobody_goes_where_none_of_them_has_what_would_do() -> None:
    slices = [a_slice_object(a_device("d0", model="old"), node="n0")]
    head = waiting(name="w", requests=[a_request(selectors=[_cel("new")])])
    cluster = a_cluster(use("robots", "r0", on="d0", node="n0"), head, slices=slices, queues=QUEUES)
    cluster.request = {"selectors": [_cel("new")]}

    (found,) = served(with_nodes(cluster, 1), "w")

    assert isinstance(found, NoCandidates)


def _cel(model: str) -> dict[str, Any]:
    return {"cel": {"expression": f'device.attributes["moorage.dev"].model == "{model}"'}}
