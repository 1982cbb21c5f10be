"""Who goes for a pod that waits for a device: by the rules, one case each."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import Reason
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Nobody, OnItsWay, Take
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_pod_object,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    claim_uid,
    pod_uid,
    put,
    refusal,
    verdict,
)
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    Cluster,
    a_device,
    a_node_object,
    a_slice_object,
    device,
)
from tests.scheduler_plugin.reclaiming.test_room import a_used_pod

QUEUES = [a_queue("mine", onvif=(1, -1)), a_queue("robots", onvif=(0, -1))]


def use(
    queue: str, name: str, *foreign: tuple[str, str], on: str = "d1", **fields: Any
) -> list[ClaimView | PodView]:
    """A claim with a device of node n, and its users."""
    node, slots = fields.pop("node", "n"), fields.pop("slots", None)
    pool = fields.pop("pool", node)
    result = a_result(pool=pool, device=on, slots=slots)
    users = [name, *(other for other, _ in foreign)]
    requests = [a_request(slots=slots)]
    claim = an_allocated_claim(name, *users, queue=queue, results=[result], requests=requests)
    own = a_used_pod(name, queue, name, node=node, **fields)
    return [claim, own, *(a_used_pod(pod, q, name, node=node) for pod, q in foreign)]


def waiting(queue: str = "mine", name: str = "w", **fields: Any) -> list[ClaimView | PodView]:
    """A pod that kube-scheduler found no node for."""
    requests = fields.pop("requests", [a_request(slots=fields.pop("slots", None))])
    spec = {"priority": fields.pop("priority", 0)}
    pod = a_pod(name, queue=queue, claims=[name], status=UNSCHEDULABLE, spec=spec, **fields)
    return [a_claim(name, requests=requests), pod]


def a_cluster(*objects: Any, slices: Any = (), queues: Any = QUEUES) -> Cluster:
    flat = [each for found in objects for each in found]
    return Cluster(a_world(*queues, *flat), *(slices or [a_slice_object("d1", "d2")]))


FULL = [use("robots", "r1", on="d1"), use("robots", "r2", on="d2", priority=5)]


def test_a_queue_within_its_quota_gets_a_device_of_one_that_is_over_it() -> None:
    cluster = a_cluster(*FULL, waiting())

    decision = cluster.decide()

    assert isinstance(decision, Take)
    assert [pod.name for pod in decision.pods] == ["r1"]
    assert decision.sentence == (
        'Pod default/w of queue "mine" is within its quota (it uses 0 of 1 onvif), and no device'
        " that would do for ResourceClaim default/w is free. So ResourceClaim default/r1 of queue"
        ' "robots" (priority 0) is given up by all who use it (1 pod), which leaves it device'
        ' moorage.dev/n/d1 on node "n".'
    )
    assert decision.hold.devices == {device("d1")}
    assert cluster.is_due(decision)


def test_what_was_decided_is_not_carried_out_once_it_does_not_serve() -> None:
    cluster = a_cluster(*FULL, waiting())
    decision = cluster.decide()
    assert isinstance(decision, Take)

    cluster.world.delete_pod(pod_uid("r2"))
    cluster.world.delete_claim(claim_uid("r2"))

    assert not cluster.is_due(decision)


def test_while_a_device_that_would_do_is_free_nobody_goes() -> None:
    cluster = a_cluster(FULL[0], waiting())

    decision = cluster.decide()

    assert isinstance(decision, Nobody)
    assert 'd2 is free, with room for it on node "n"' in decision.sentence


def test_a_free_device_on_a_node_where_the_pod_does_not_fit_is_none() -> None:
    slices = [a_slice_object("d1"), a_slice_object("d1", node="far")]
    cluster = a_cluster(FULL[0], waiting(), slices=slices)
    cluster.nodes["far"] = a_node_object("far", labels={"zone": "there"})
    cluster.waiting = {"spec": {"nodeSelector": {"zone": "here"}}}

    assert cluster.taken() == ["r1"]


@pytest.mark.parametrize(
    "quotas", [{"mine": (0, -1), "robots": (0, -1)}, {"mine": (1, -1), "robots": (2, -1)}]
)
def test_quotas_say_whether_anybody_goes_and_nothing_is_read_for_that(quotas: Any) -> None:
    queues = [a_queue(name, onvif=quota) for name, quota in quotas.items()]
    cluster = a_cluster(*FULL, waiting(), queues=queues)

    assert cluster.taken() == []
    assert cluster.read == []


def test_selectors_of_class_and_request_say_which_device_would_do() -> None:
    slices = [a_slice_object(a_device("d1", model="plain"), a_device("d2", model="fine"))]
    cluster = a_cluster(*FULL, waiting(), slices=slices)
    cluster.class_selectors = ("device.driver == 'moorage.dev'",)
    expression = "device.attributes['moorage.dev'].model == 'fine'"
    cluster.request = {"selectors": [{"cel": {"expression": expression}}]}
    assert cluster.taken() == ["r2"]

    cluster.class_selectors = ("device.driver == 'another'",)

    decision = cluster.decide()
    assert isinstance(decision, Nobody)
    assert decision.unmet == "mine"


@pytest.mark.parametrize(
    "expression",
    [
        "device.capacity['moorage.dev'].slots.compareTo(quantity('1')) >= 0",
        "device.attributes['absent.example.com'].model == 'plain'",
        "device.attributes['moorage.dev'].?model.orValue('') == 'plain'",
        "no such language",
        "1",
    ],
)
def test_what_cannot_be_evaluated_counts_as_no(expression: str) -> None:
    cluster = a_cluster(*FULL, waiting())
    cluster.request = {"selectors": [{"cel": {"expression": expression}}]}

    assert cluster.taken() == []


def test_the_pod_has_to_have_room_on_the_node_once_they_are_gone() -> None:
    cluster = a_cluster(*FULL, waiting())
    cluster.waiting = {"spec": {"containers": [asking("2")]}}
    cluster.pods["n"] = [
        a_pod_on_node("r1", "1"),
        a_pod_on_node("r2", "3"),
        a_pod_on_node("other", "0.5"),
    ]
    assert cluster.taken() == ["r2"]

    cluster.pods["n"].append(a_pod_on_node("more", "1"))

    decision = cluster.decide()
    assert isinstance(decision, Nobody)
    assert '2 that would do: node "n" has not enough cpu for it' in decision.sentence


def asking(cpu: str) -> dict[str, Any]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}}


def a_pod_on_node(name: str, cpu: str, **spec: Any) -> Any:
    return a_pod_object(name, node="n", spec={"containers": [asking(cpu)], **spec})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "volumes"),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "topology spread"),
        ({"containers": [{"ports": [{"hostPort": 80}]}]}, "host ports"),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            "affinity to pods",
        ),
    ],
)
def test_in_doubt_nobody_goes_and_it_is_said_what_was_in_doubt(spec: Any, said: str) -> None:
    cluster = a_cluster(*FULL, waiting())
    cluster.waiting = {"spec": spec}

    decision = cluster.decide()

    assert isinstance(decision, Nobody)
    assert decision.unmet == "mine"
    assert f"its {said}" in decision.sentence


@pytest.mark.parametrize(
    "requests",
    [
        [a_request(count=2)],
        [a_request(allocationMode="All")],
        [a_request(name="a"), a_request(name="b")],
        [{"name": "req", "firstAvailable": [{"name": "x", "deviceClassName": "onvif"}]}],
    ],
)
def test_requests_that_are_not_looked_at_are_in_doubt(requests: Any) -> None:
    cluster = a_cluster(*FULL, waiting(requests=requests))

    decision = cluster.decide()

    assert isinstance(decision, Nobody)
    assert "is not looked at" in decision.sentence


def test_slots_of_one_device_are_gathered_until_they_are_enough() -> None:
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    shared = [use("robots", f"r{n}", on="d1", slots=1, priority=n) for n in range(3)]
    slices = [a_slice_object(a_device("d1", slots=3))]
    cluster = a_cluster(*shared, waiting(slots=2), slices=slices, queues=queues)
    cluster.request = {"slots": 2}

    assert cluster.taken() == ["r0", "r1"]


def test_all_users_of_a_claim_go_and_foreign_ones_only_where_no_other_serves() -> None:
    queues = [*QUEUES, a_queue("others")]
    shared = use("robots", "r1", ("f1", "others"), on="d1")
    cluster = a_cluster(shared, FULL[1], waiting(), queues=queues)
    assert cluster.taken() == ["r2"]

    put(cluster.world, a_used_pod("r2", "robots", "r2", non_preemptible=True))

    assert cluster.taken() == ["f1", "r1"]


def test_within_a_queue_the_higher_priority_goes_first() -> None:
    queues = [a_queue("mine", onvif=(0, -1))]
    used = [use("mine", "low", on="d1"), use("mine", "high", on="d2", priority=9)]
    cluster = a_cluster(*used, waiting(priority=5), queues=queues)

    assert cluster.taken() == ["low"]


def test_a_device_that_is_about_to_be_free_is_waited_for() -> None:
    cluster = a_cluster(*FULL, waiting())

    put(cluster.world, a_used_pod("r2", "robots", "r2", deleting=True))

    assert isinstance(cluster.decide(), OnItsWay)


def test_a_device_whose_node_is_about_to_have_room_is_waited_for() -> None:
    """The pod that goes has the CPU, too; nobody else is evicted while it takes its time."""
    leaving = a_pod_on_node("r1", "2")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:30Z"
    cluster = a_cluster(use("robots", "r1"), use("robots", "r2", on="d2"), waiting())
    put(cluster.world, a_used_pod("r1", "robots", "r1", deleting=True))
    cluster.pods["n"] = [leaving, a_pod_on_node("r2", "2")]
    cluster.waiting = {"spec": {"containers": [asking("2")]}}

    assert isinstance(cluster.decide(), OnItsWay)


def test_what_was_taken_for_one_pod_is_nobody_elses() -> None:
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    cluster = a_cluster(*FULL, waiting(), waiting(name="w2"), queues=queues)
    first = cluster.decide()
    assert isinstance(first, Take)
    cluster.world.hold(first.hold)
    put(cluster.world, a_used_pod("r1", "robots", "r1", deleting=True))

    assert isinstance(cluster.decide(), OnItsWay)
    assert cluster.taken("w2") == ["r2"]


def test_pods_that_could_take_each_others_devices_only_get_some_at_once_if_they_are_alike() -> None:
    """Else one is left with a device that does not serve it, and somebody went in vain."""
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    cluster = a_cluster(*FULL, waiting(), waiting(name="w2"), queues=queues)
    first = cluster.decide()
    assert isinstance(first, Take)
    cluster.world.hold(first.hold)

    cluster.request = {"selectors": [{"cel": {"expression": "true"}}]}
    assert isinstance(cluster.decide("w2"), OnItsWay)

    cluster.request = {}
    assert cluster.taken("w2") == ["r2"]


def test_room_on_a_node_is_for_one_pod_and_not_for_two() -> None:
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    cluster = a_cluster(*FULL, waiting(), waiting(name="w2"), queues=queues)
    cluster.waiting = {"spec": {"containers": [asking("3")]}}
    first = cluster.decide()
    assert isinstance(first, Take)
    cluster.world.hold(first.hold)

    assert cluster.taken("w2") == []


def test_for_a_claim_that_is_on_its_way_to_one_user_nobody_goes_for_another() -> None:
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    sharer = a_pod("w2", queue="mine", claims=["w"], status=UNSCHEDULABLE)
    cluster = a_cluster(*FULL, waiting(), [sharer], queues=queues)
    first = cluster.decide()
    assert isinstance(first, Take)

    cluster.world.hold(first.hold)

    assert cluster.taken("w2") == []


def test_a_device_that_is_held_is_refused_to_others_from_when_it_is_free() -> None:
    cluster = a_cluster(*FULL, waiting())
    world = cluster.world
    take = cluster.decide()
    assert isinstance(take, Take)
    world.hold(take.hold)
    put(world, a_claim("next"), a_pod("next", queue="robots", claims=["next"]))
    successor, waits = world.facts.pod(pod_uid("next")), world.facts.pod(pod_uid("w"))
    assert successor is not None
    assert waits is not None
    assert not hasattr(verdict(world, successor), "reason")

    world.delete_pod(pod_uid("r1"))

    assert refusal(world, successor).reason is Reason.DEVICE_HELD
    assert refusal(world, successor).sentence == (
        "ResourceClaim default/next has to wait: onvif was taken back for Pod default/w, and until"
        " that has it nobody else is given any."
    )
    assert not hasattr(verdict(world, successor, at_bind=True), "reason")
    assert not hasattr(verdict(world, waits), "reason")
    world.end_hold(pod_uid("w"))
    assert not hasattr(verdict(world, successor), "reason")


def test_a_shared_devices_nodes_are_those_where_its_users_go() -> None:
    slices = [a_slice_object("d1", node="")]
    used = use("robots", "r1", on="d1", pool="shared")
    cluster = a_cluster(used, waiting(), slices=slices)

    assert cluster.taken() == ["r1"]
    assert cluster.read == ["n"]


@pytest.mark.parametrize(
    "odd",
    [
        {"taints": [{"key": "offline", "effect": "NoSchedule"}]},
        {"consumesCounters": [{"counterSet": "all"}]},
        {"bindingConditions": ["ready"]},
    ],
)
def test_a_device_about_which_more_decides_does_not_do(odd: Any) -> None:
    slices = [a_slice_object(a_device("d1", **odd), a_device("d2", **odd))]

    assert a_cluster(*FULL, waiting(), slices=slices).taken() == []


def test_a_pool_that_is_not_complete_counts_for_nothing() -> None:
    pool = {"name": "n", "generation": 2, "resourceSliceCount": 2}
    slices = [a_slice_object("d1", "d2", pool=pool)]

    assert a_cluster(*FULL, waiting(), slices=slices).taken() == []
