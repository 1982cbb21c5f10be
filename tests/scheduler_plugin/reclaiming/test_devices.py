"""Who goes for a pod that waits for a device: by the rules, one case each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.objects.names import NO_QUEUE, POD_GROUP_ANNOTATION
from scheduler_plugin.objects.pods import PodGroupView, PodView
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import ExcludedPods
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
)
from tests.scheduler_plugin.reclaiming.builders import a_used_pod
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    Cluster,
    a_device,
    a_node_object,
    a_slice_object,
    device,
)

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


FULL_ON = [("r1", "d1"), ("r2", "d2")]
FULL = [use("robots", "r1", on="d1"), use("robots", "r2", on="d2", priority=5)]


def test_a_queue_within_its_quota_gets_a_device_of_one_that_is_over_it() -> None:
    cluster = a_cluster(*FULL, waiting())

    decision = cluster.decide()

    assert isinstance(decision, Targets)
    assert [pod.name for pod in decision.pods] == ["r1"]
    assert decision.sentence == (
        'Pod default/w of queue "mine" is within the share of onvif that is guaranteed to its'
        ' queue. So ResourceClaim default/r1 of queue "robots" (priority 0) is given up by all its'
        ' users (1 pod), which leaves it device moorage.dev/n/d1 on node "n".'
    )
    assert (decision.hold.devices, decision.hold.node) == (((device("d1"), 1),), "n")
    assert cluster.is_due(decision)


def test_of_a_class_that_does_not_exist_no_free_device_would_do() -> None:
    """kube-scheduler tries no such pod, so that what is kept for it is kept in vain."""
    cluster = a_cluster(waiting(requests=[a_request("ghost")]), waiting(name="other"))
    pods = {pod.name: pod for pod in cluster.world.facts.pods()}
    placements = cluster.placements(ExcludedPods())

    free = {name: [*filter(None, placements.free_nodes(pod))] for name, pod in pods.items()}

    assert free == {"w": [], "other": ["n"]}


@pytest.mark.parametrize("way", ["spared", "joined", "bound", "gone"])
def test_what_was_decided_is_not_carried_out_once_it_is_wrong(way: str) -> None:
    cluster = a_cluster(*FULL, waiting())
    decision, world = cluster.decide(), cluster.world
    assert isinstance(decision, Targets)
    assert cluster.is_due(decision)

    if way == "spared":
        put(world, a_used_pod("r1", "robots", "r1", non_preemptible=True))
    elif way == "joined":
        result = a_result(pool="n", device="d1")
        put(world, an_allocated_claim("r1", "r1", "more", queue="robots", results=[result]))
        put(world, a_used_pod("more", "robots", "r1"))
    elif way == "bound":
        put(world, a_pod("w", queue="mine", claims=["w"], node="n"))
    else:
        world.delete_pod(pod_uid("r1"))

    assert not cluster.is_due(decision)


def test_while_a_device_that_would_do_is_free_nobody_goes() -> None:
    cluster = a_cluster(FULL[0], waiting())

    decision = cluster.decide()

    assert isinstance(decision, InProgress)


def test_a_free_device_on_a_node_where_the_pod_does_not_fit_is_none() -> None:
    slices = [a_slice_object("d1"), a_slice_object("d1", node="far")]
    cluster = a_cluster(FULL[0], waiting(), slices=slices)
    cluster.nodes["far"] = a_node_object("far", labels={"zone": "there"})
    cluster.waiting = {"spec": {"nodeSelector": {"zone": "here"}}}

    assert cluster.taken() == ["r1"]


@pytest.mark.parametrize(
    "quotas", [{"mine": (0, -1), "robots": (0, -1)}, {"mine": (1, -1), "robots": (2, -1)}]
)
def test_quotas_say_whether_anybody_goes(quotas: Any) -> None:
    queues = [a_queue(name, onvif=quota) for name, quota in quotas.items()]
    cluster = a_cluster(*FULL, waiting(), queues=queues)

    assert cluster.taken() == []


@pytest.mark.parametrize("users", [{}, {"priority": -1, "non_preemptible": True}])
@pytest.mark.parametrize("quota", [0, 1, 2])
def test_where_nobody_could_go_it_is_said_why(quota: int, users: Any) -> None:
    cluster = a_cluster(
        use("mine", "m1", on="d1", **users),
        use("mine", "m2", on="d2", **users),
        waiting(),
        queues=[a_queue("mine", onvif=(quota, -1)), a_queue("robots", onvif=(0, -1))],
    )

    decision = cluster.decide()

    assert isinstance(decision, NoCandidates)
    assert "no matching device is free (onvif)" in decision.sentence
    assert "would be over its quota" in decision.sentence


def test_where_those_beyond_their_quota_are_protected_it_is_said_why() -> None:
    full = [use("robots", name, on=on, non_preemptible=True) for name, on in FULL_ON]
    cluster = a_cluster(*full, waiting())

    decision = cluster.decide()

    assert isinstance(decision, NoCandidates)
    assert "no pod of another queue uses more than the queue's share" in decision.sentence
    assert decision.unmet == "mine"


def test_what_is_on_its_way_out_is_looked_for_although_nobody_could_go() -> None:
    cluster = a_cluster(
        use("robots", "r1", on="d1", deleting=True),
        use("robots", "r2", on="d2", non_preemptible=True),
        waiting(),
    )

    assert isinstance(cluster.decide(), InProgress)


def test_selectors_of_class_and_request_say_which_device_would_do() -> None:
    slices = [a_slice_object(a_device("d1", model="plain"), a_device("d2", model="fine"))]
    cluster = a_cluster(*FULL, waiting(), slices=slices)
    cluster.class_selectors = ("device.driver == 'moorage.dev'",)
    expression = "device.attributes['moorage.dev'].model == 'fine'"
    cluster.request = {"selectors": [{"cel": {"expression": expression}}]}
    assert cluster.taken() == ["r2"]

    cluster.class_selectors = ("device.driver == 'another'",)

    decision = cluster.decide()
    assert isinstance(decision, NoCandidates)
    assert decision.unmet == "mine"


@pytest.mark.parametrize(
    "expression",
    [
        "semver('1.0.0').isGreaterThan(semver('0.1.0'))",
        "device.driver",
        "no such language",
    ],
)
def test_what_cannot_be_evaluated_may_fit(expression: str) -> None:
    cluster = a_cluster(*FULL, waiting())
    cluster.request = {"selectors": [{"cel": {"expression": expression}}]}

    assert cluster.taken() == ["r1"]


@pytest.mark.parametrize(
    "expression",
    [
        "device.capacity['moorage.dev'].memory.compareTo(quantity('1')) >= 0",
        "device.attributes['absent.example.com'].model == 'plain'",
    ],
)
def test_no_pod_goes_for_a_device_that_lacks_what_the_selector_reads(expression: str) -> None:
    cluster = a_cluster(*FULL, waiting())
    cluster.request = {"selectors": [{"cel": {"expression": expression}}]}

    assert isinstance(cluster.decide(), NoCandidates)


def test_the_pod_has_to_have_room_on_the_node_once_they_are_gone() -> None:
    cluster = a_cluster(*FULL, waiting())
    cluster.waiting = {"spec": {"containers": [asking("2")]}}
    cluster.pods["n"] = [
        a_pod_on_node("r1", "1"),
        a_pod_on_node("r2", "3"),
        a_pod_on_node("other", "0.5"),
    ]
    assert cluster.taken() == ["r2"]

    cluster.pods["n"].append(a_pod_on_node("more", "2.5"))

    decision = cluster.decide()
    assert isinstance(decision, NoCandidates)
    assert "1 node has too little cpu for it" in decision.sentence


def asking(cpu: str) -> dict[str, Any]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}}


def a_pod_on_node(name: str, cpu: str, **spec: Any) -> Any:
    return a_pod_object(name, node="n", spec={"containers": [asking(cpu)], **spec})


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"topologySpreadConstraints": [{"maxSkew": 1}]},
        {"containers": [{"ports": [{"hostPort": 80}]}]},
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
    ],
    ids=["volume", "spread", "host port", "affinity"],
)
def test_what_is_not_modelled_is_assumed_to_fit(spec: Any) -> None:
    cluster = a_cluster(*FULL, waiting())
    cluster.waiting = {"spec": spec}

    assert cluster.taken() == ["r1"]


def test_where_such_pods_were_not_bound_nothing_is_taken_for_them() -> None:
    slices = [a_slice_object("d1"), a_slice_object("d1", node="far")]
    far = use("robots", "r2", on="d1", node="far", priority=5)
    cluster = a_cluster(FULL[0], far, waiting(), slices=slices)
    cluster.nodes["far"] = a_node_object("far")
    cluster.left_out = frozenset({"n"})
    assert cluster.taken() == ["r2"]

    cluster.left_out = frozenset({"n", "far"})

    decision = cluster.decide()
    assert isinstance(decision, NoCandidates)
    assert "2 nodes are left out, where such pods were not bound" in decision.sentence


def test_slots_of_one_device_are_gathered_until_they_are_enough() -> None:
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    shared = [use("robots", f"r{n}", on="d1", slots=1, priority=n) for n in range(3)]
    slices = [a_slice_object(a_device("d1", slots=3))]
    cluster = a_cluster(*shared, waiting(slots=2), slices=slices, queues=queues)
    cluster.request = {"slots": 2}

    assert cluster.taken() == ["r0", "r1"]


def test_all_users_of_a_claim_go_foreign_ones_too() -> None:
    queues = [*QUEUES, a_queue("others")]
    shared = use("robots", "r1", ("f1", "others"), on="d1")
    cluster = a_cluster(shared, FULL[1], waiting(), queues=queues)

    assert cluster.taken() == ["f1", "r1"]


def test_within_a_queue_the_higher_priority_goes_first() -> None:
    queues = [a_queue("mine", onvif=(0, -1))]
    used = [use("mine", "low", on="d1"), use("mine", "high", on="d2", priority=9)]
    cluster = a_cluster(*used, waiting(priority=5), queues=queues)

    assert cluster.taken() == ["low"]


def test_a_device_that_is_about_to_be_free_is_waited_for() -> None:
    cluster = a_cluster(*FULL, waiting())

    put(cluster.world, a_used_pod("r2", "robots", "r2", deleting=True))

    assert isinstance(cluster.decide(), InProgress)


def test_a_device_whose_node_is_about_to_have_room_is_waited_for() -> None:
    """The pod that goes has the CPU, too; nobody else is evicted while it takes its time."""
    terminating = a_pod_on_node("r1", "2")
    terminating["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:30Z"
    cluster = a_cluster(use("robots", "r1"), use("robots", "r2", on="d2"), waiting())
    put(cluster.world, a_used_pod("r1", "robots", "r1", deleting=True))
    cluster.pods["n"] = [terminating, a_pod_on_node("r2", "2")]
    cluster.waiting = {"spec": {"containers": [asking("2")]}}

    assert isinstance(cluster.decide(), InProgress)


def test_what_was_taken_for_one_pod_is_nobody_elses() -> None:
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    cluster = a_cluster(*FULL, waiting(), waiting(name="w2"), queues=queues)
    first = cluster.decide()
    assert isinstance(first, Targets)
    cluster.world.hold(first.hold)
    put(cluster.world, a_used_pod("r1", "robots", "r1", deleting=True))

    assert isinstance(cluster.decide(), InProgress)
    assert cluster.taken("w2") == ["r2"]


def test_for_a_claim_that_is_on_its_way_to_one_user_nobody_goes_for_another() -> None:
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    sharer = a_pod("w2", queue="mine", claims=["w"], status=UNSCHEDULABLE)
    cluster = a_cluster(*FULL, waiting(), [sharer], queues=queues)
    first = cluster.decide()
    assert isinstance(first, Targets)

    cluster.world.hold(first.hold)

    assert cluster.taken("w2") == []


def test_a_shared_devices_nodes_are_those_where_its_users_go() -> None:
    slices = [a_slice_object("d1", node="")]
    used = use("robots", "r1", on="d1", pool="shared")
    cluster = a_cluster(used, waiting(), slices=slices)

    assert cluster.taken() == ["r1"]


def test_a_device_with_a_taint_does_not_do() -> None:
    odd: dict[str, Any] = {"taints": [{"key": "offline", "effect": "NoSchedule"}]}
    slices = [a_slice_object(a_device("d1", **odd), a_device("d2", **odd))]

    assert a_cluster(*FULL, waiting(), slices=slices).taken() == []


def test_a_pool_that_is_not_complete_counts_for_nothing() -> None:
    pool = {"name": "n", "generation": 2, "resourceSliceCount": 2}
    slices = [a_slice_object("d1", "d2", pool=pool)]

    assert a_cluster(*FULL, waiting(), slices=slices).taken() == []


# Several devices.

TWO = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]


def a_cluster_for(requests: list[Any], *objects: Any, **options: Any) -> Cluster:
    options.setdefault("queues", TWO)
    cluster = a_cluster(*objects, waiting(requests=requests), **options)
    cluster.requests = {"w": requests}
    return cluster


@pytest.mark.parametrize(
    "requests", [[a_request(count=2)], [a_request(name="a"), a_request(name="b")]]
)
def test_as_many_devices_are_taken_on_one_node_as_are_asked_for(requests: Any) -> None:
    slices = [a_slice_object("d1", "d2"), a_slice_object("d1", node="far")]
    far = use("robots", "r0", on="d1", node="far", since="2026-11-21T11:59:00Z")
    cluster = a_cluster_for(requests, far, *FULL, slices=slices)
    cluster.nodes["far"] = a_node_object("far")

    decision = cluster.decide()

    assert isinstance(decision, Targets)
    assert sorted(pod.name for pod in decision.pods) == ["r1", "r2"]
    assert {device for device, _ in decision.hold.devices} == {device("d1"), device("d2")}
    assert len(decision.hold.awaits) == 2
    assert decision.sentence.endswith(
        'which leaves it device moorage.dev/n/d1, device moorage.dev/n/d2 on node "n".'
    )
    assert cluster.is_due(decision)


def test_what_is_free_is_used_and_only_the_rest_taken() -> None:
    cluster = a_cluster_for([a_request(count=2)], FULL[0])
    assert cluster.taken() == ["r1"]

    slices = [a_slice_object("d1", "d2", "d3")]
    decision = a_cluster_for([a_request(count=2)], FULL[0], slices=slices).decide()
    assert isinstance(decision, InProgress)


def test_what_leaves_one_of_the_devices_anyway_is_waited_for_as_well() -> None:
    terminating = use("robots", "r1", on="d1", deleting=True)
    unrelated = use("robots", "r3", on="d3", deleting=True, node="far")
    decision = a_cluster_for([a_request(count=2)], terminating, FULL[1], unrelated).decide()

    assert isinstance(decision, Targets)
    assert [pod.name for pod in decision.pods] == ["r2"]
    assert set(decision.hold.awaits) == {claim_uid("r1"), claim_uid("r2")}


def test_nobody_goes_where_a_node_cannot_have_as_many() -> None:
    slices = [a_slice_object("d1"), a_slice_object("d1", node="far")]
    far = use("robots", "r2", on="d1", node="far")
    cluster = a_cluster_for([a_request(count=2)], FULL[0], far, slices=slices)
    cluster.nodes["far"] = a_node_object("far")

    decision = cluster.decide()

    assert isinstance(decision, NoCandidates)
    assert decision.unmet == "mine"


def test_whoever_has_less_priority_goes_though_one_claim_were_enough() -> None:
    both = [a_result(pool="n", device=name) for name in ("d3", "d4")]
    claim = an_allocated_claim("r3", "r3", queue="robots", results=both)
    large = [claim, a_used_pod("r3", "robots", "r3", priority=9)]
    slices = [a_slice_object("d1", "d2", "d3", "d4")]

    assert a_cluster_for([a_request(count=2)], *FULL, large, slices=slices).taken() == ["r1", "r2"]


def test_each_request_gets_what_its_own_selectors_say() -> None:
    """The first would do with either, the second with one: so that has to be left to it."""
    fine: dict[str, Any] = {
        "selectors": [{"cel": {"expression": "device.attributes['moorage.dev'].model=='f'"}}]
    }
    requests = [a_request(name="a"), a_request(name="b", **fine)]
    slices = [a_slice_object(a_device("d1", model="f"), a_device("d2"))]

    assert a_cluster_for(requests, *FULL, slices=slices).taken() == ["r1", "r2"]
    plain = [a_slice_object("d1", "d2")]
    assert a_cluster_for(requests, *FULL, slices=plain).taken() == []


def choices(*expressions: str) -> list[Any]:
    alternatives = [
        {
            "name": f"x{number}",
            "deviceClassName": "onvif",
            "selectors": [{"cel": {"expression": text}}],
        }
        for number, text in enumerate(expressions)
    ]
    return [{"name": "req", "firstAvailable": alternatives}]


def test_of_several_alternatives_one_is_enough() -> None:
    model = "device.attributes['moorage.dev'].model == "
    slices = [a_slice_object(a_device("d1", model="a"), a_device("d2", model="b"))]
    requests = choices(f"{model}'none'", f"{model}'b'")
    assert a_cluster_for(requests, *FULL, slices=slices).taken() == ["r2"]

    free = a_cluster_for(choices(f"{model}'a'", f"{model}'b'"), FULL[0], slices=slices)

    assert free.taken() == []


def test_a_pods_claims_are_served_together_or_nobody_goes() -> None:
    pod = a_pod("w", queue="mine", claims=["w", "v"], status=UNSCHEDULABLE)
    cluster = a_cluster(*FULL, [a_claim("w"), a_claim("v"), pod], queues=TWO)
    assert cluster.taken() == ["r1", "r2"]

    put(cluster.world, a_used_pod("r2", "robots", "r2", non_preemptible=True))

    assert cluster.taken() == []


# Groups.


def a_group_waiting(*names: str) -> list[Any]:
    group: dict[str, Any] = {"annotations": {POD_GROUP_ANNOTATION: "train"}}
    return [each for name in names for each in waiting(name=name, **group)]


def test_each_of_a_group_gets_a_device_or_nobody_goes() -> None:
    slices = [a_slice_object("d1"), a_slice_object("d1", node="far")]
    far = use("robots", "r2", on="d1", node="far")
    cluster = a_cluster(FULL[0], far, a_group_waiting("w", "v"), slices=slices, queues=TWO)
    cluster.nodes["far"] = a_node_object("far")
    cluster.world.put_group(PodGroupView("default", "train", NO_QUEUE, 2))

    decision = cluster.decide()

    assert isinstance(decision, Targets)
    assert sorted(pod.name for pod in decision.pods) == ["r1", "r2"]
    devices = {hold.name: hold.devices for hold in decision.holds}
    assert set(devices) == {"Pod default/w", "Pod default/v"}
    held = {device for found in devices.values() for device, _ in found}
    assert held == {device("d1"), device("d1", "far")}
    assert cluster.is_due(decision)
    put(cluster.world, a_used_pod("r2", "robots", "r2", node="far", non_preemptible=True))
    assert not cluster.is_due(decision)
    assert cluster.taken() == []


def test_for_a_part_of_a_group_no_device_is_taken() -> None:
    cluster = a_cluster(*FULL, a_group_waiting("w", "v"), queues=TWO)
    cluster.world.put_group(PodGroupView("default", "train", NO_QUEUE, 3))

    assert cluster.taken() == []


# Slots of the device plugin.


def a_slot_user(name: str, queue: str, **fields: Any) -> Any:
    return a_used_pod(name, queue, requests={"akri.sh/onvif": "1"}, **fields)


def a_cluster_of_slots(*pods: Any, slots: str = "1", wants: int = 1) -> Cluster:
    """A node whose device plugin has some slots; no device of a claim."""
    w = a_pod("w", queue="mine", requests={"akri.sh/onvif": str(wants)}, status=UNSCHEDULABLE)
    world = a_world(*(QUEUES if wants == 1 else TWO), *pods, w)
    world.put_configuration(ResourceKey("onvif"))
    world.put_instance(InstanceView("onvif-1", ResourceKey("onvif"), ("n",), int(slots)))
    cluster = Cluster(world)
    cluster.nodes["n"] = a_node_object(allocatable={"akri.sh/onvif": slots})
    cluster.pods["n"] = [
        a_pod_object(pod.name, node="n", requests=dict(pod.requests)) for pod in pods
    ]
    for body, pod in zip(cluster.pods["n"], pods, strict=True):
        if pod.deleting:
            body["metadata"]["deletionTimestamp"] = pod.grace_ends_at
    return cluster


def test_a_slot_of_the_device_plugin_is_taken_back_with_its_pod() -> None:
    cluster = a_cluster_of_slots(a_slot_user("r1", "robots"))

    decision = cluster.decide()

    assert isinstance(decision, Targets)
    assert [pod.name for pod in decision.pods] == ["r1"]
    assert decision.sentence.endswith('which leaves it 1 akri.sh/onvif on node "n".')
    assert decision.hold.awaits_pods == (pod_uid("r1"),)
    assert cluster.is_due(decision)


def test_slots_that_somebody_leaves_anyway_are_waited_for_as_well() -> None:
    users = [a_slot_user("r1", "robots", deleting=True), a_slot_user("r2", "robots")]
    take = a_cluster_of_slots(*users, slots="2", wants=2).decide()

    assert isinstance(take, Targets)
    assert [pod.name for pod in take.pods] == ["r2"]
    assert set(take.hold.awaits_pods) == {pod_uid("r1"), pod_uid("r2")}


def test_a_slot_that_is_free_or_no_ones_beyond_the_quota_is_not_taken() -> None:
    assert a_cluster_of_slots(a_slot_user("r1", "robots"), slots="2").taken() == []
    assert a_cluster_of_slots(a_slot_user("m1", "mine")).taken() == []


# Room.


def a_room(*objects: Any, **options: Any) -> Cluster:
    queues = [
        a_queue("root", onvif=(2, 2)),
        a_queue("mine", parent="root", onvif=(1, -1)),
        a_queue("robots", parent="root", onvif=(0, -1)),
    ]
    return a_cluster(*objects, waiting(), queues=queues, **options)


def test_room_is_freed_where_the_pod_finds_a_place_too() -> None:
    """The younger claim would go, and leaves a device on a node that does not serve."""
    slices = [a_slice_object("d1"), a_slice_object("d1", node="far")]
    far = use("robots", "r2", on="d1", node="far", since="2026-11-21T11:59:00Z")
    cluster = a_room(FULL[0], far, slices=slices)
    cluster.nodes["far"] = a_node_object("far")
    assert cluster.taken() == ["r2"]

    cluster.nodes["far"]["spec"] = {"taints": [{"key": "gone", "effect": "NoSchedule"}]}

    assert cluster.taken() == ["r1"]


def test_nobody_goes_for_room_where_no_node_has_as_many_devices() -> None:
    """KAI's row preempt 266: four devices on two nodes, and a job of four that waits."""
    queues = [a_queue("root", onvif=(4, 4)), a_queue("mine", parent="root", onvif=(4, -1))]
    slices = [a_slice_object("d1", "d2"), a_slice_object("d1", "d2", node="far")]
    users = [
        use("mine", f"r{number}", on=f"d{number % 2 + 1}", node="n" if number < 2 else "far")
        for number in range(4)
    ]
    whole = waiting(requests=[a_request(count=4)], priority=50)
    cluster = a_cluster(*users, whole, slices=slices, queues=queues)
    cluster.nodes["far"] = a_node_object("far")
    cluster.request = {"count": 4}
    assert cluster.taken() == []

    cluster = a_cluster(
        *users,
        waiting(requests=[a_request(count=2)], priority=50),
        slices=slices,
        queues=queues,
    )
    cluster.nodes["far"] = a_node_object("far")
    cluster.request = {"count": 2}
    assert cluster.taken() in (["r0", "r1"], ["r2", "r3"])


def test_nobody_goes_for_room_that_the_pod_could_not_use() -> None:
    cluster = a_room(*FULL)
    cluster.waiting = {"spec": {"containers": [asking("5")]}}

    decision = cluster.decide()

    assert isinstance(decision, NoCandidates)
    assert decision.unmet == "mine"
    assert "has too little cpu" in decision.sentence


# Pods that do not end.


def test_a_pod_that_never_ends_is_not_waited_for() -> None:
    cluster = a_cluster(*FULL, waiting())
    put(cluster.world, a_used_pod("r1", "robots", "r1", deleting=True))
    assert isinstance(cluster.decide(), InProgress)
    stuck = ExcludedPods(stuck={pod_uid("r1")})
    assert cluster.taken(excluded=stuck) == ["r2"]

    put(cluster.world, a_used_pod("r2", "robots", "r2", non_preemptible=True))

    decision = cluster.decide(excluded=stuck)
    assert isinstance(decision, NoCandidates)
    assert "1 claims or pods have users that are terminating, and do not end" in decision.sentence


def test_nor_is_it_for_room() -> None:
    cluster = a_room(*FULL, slices=[a_slice_object("d1", "d2", "d3")])
    put(cluster.world, a_used_pod("r1", "robots", "r1", deleting=True))
    assert isinstance(cluster.decide(), InProgress)

    assert cluster.taken(excluded=ExcludedPods(stuck={pod_uid("r1")})) == ["r2"]


def test_nobody_goes_for_a_device_that_a_pod_of_another_scheduler_waits_for() -> None:
    claim, pod = waiting()
    assert isinstance(pod, PodView)
    cluster = a_cluster(*FULL, [claim, replace(pod, scheduler="kai-scheduler")])

    decision = cluster.decide()

    assert isinstance(decision, NoCandidates)
    assert 'spec.schedulerName: is "kai-scheduler"' in decision.sentence
