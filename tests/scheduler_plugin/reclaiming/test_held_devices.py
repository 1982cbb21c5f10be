"""What is held for one pod, others do not get: kept off nodes at Filter, refused at Bind."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from scheduler_plugin.reclaiming.targets import Targets
from tests.scheduler_plugin.builders import a_claim, a_pod, a_queue, a_request, pod_uid, put
from tests.scheduler_plugin.builders import a_result as a_granted
from tests.scheduler_plugin.builders import an_allocated_claim as an_allocated
from tests.scheduler_plugin.reclaiming.devices_builders import (
    Cluster,
    a_device,
    a_node_object,
    a_slice_object,
)
from tests.scheduler_plugin.reclaiming.test_devices import FULL, a_cluster, use, waiting

QUEUES = [a_queue("mine", onvif=(9, -1)), a_queue("robots", onvif=(0, -1))]


def held(*objects: Any, queues: Any = QUEUES, **options: Any) -> Cluster:
    """What pod w waits for is held for it, and its users are gone."""
    cluster = a_cluster(*(objects or FULL), waiting(), queues=queues, **options)
    take = cluster.decide()
    assert isinstance(take, Targets)
    cluster.world.hold(take.hold)
    for pod in take.pods:
        cluster.world.delete_pod(pod.uid)
        put(cluster.world, a_claim(pod.name))
    return cluster


def asks(cluster: Cluster, name: str = "next", **fields: Any) -> PodView:
    """Another pod that waits."""
    claim, pod = waiting("robots", name, **fields)
    put(cluster.world, claim, pod)
    found = cluster.world.facts.pod(pod_uid(name))
    assert found is not None
    return found


def kept_off(cluster: Cluster, pod: PodView) -> dict[str, str]:
    devices = HeldDevices(cluster.world, cluster.inventory())
    known = cluster.world.facts.pod(pod.uid)
    assert known is not None
    return dict(devices.kept_off(known))


def granted(cluster: Cluster, pod: str, device: str, slots: int | None = None) -> ClaimView:
    """A claim that kube-scheduler gave a device of node n."""
    requests = [a_request(slots=slots)]
    result = a_granted(pool="n", device=device, slots=slots)
    claim = an_allocated(pod, pod, requests=requests, results=[result])
    put(cluster.world, claim)
    return claim


def test_where_only_the_held_device_is_free_others_are_kept_off() -> None:
    cluster = held()

    assert kept_off(cluster, asks(cluster)) == {
        "n": "DeviceHeld: a device of this node is held for Pod default/w: Pod default/next gets"
        " another, or waits until Pod default/w has it."
    }


def test_where_enough_is_free_beside_it_they_are_not() -> None:
    cluster = held(slices=[a_slice_object("d1", "d2")])
    cluster.slices = (a_slice_object("d1", "d2", "d3"),)

    assert kept_off(cluster, asks(cluster)) == {}


def test_other_nodes_are_open() -> None:
    slices = [a_slice_object("d1", "d2"), a_slice_object("d1", node="far")]
    far = use("robots", "r9", on="d1", node="far", priority=9)
    cluster = a_cluster(*FULL, far, waiting(), queues=QUEUES, slices=slices)
    cluster.nodes["far"] = a_node_object("far")
    take = cluster.decide()
    assert isinstance(take, Targets)
    cluster.world.hold(take.hold)
    for pod in (*take.pods, a_pod("r9")):
        cluster.world.delete_pod(pod.uid)
        put(cluster.world, a_claim(pod.name))

    assert set(kept_off(cluster, asks(cluster))) == {"n"}


def test_whoever_asks_for_other_devices_is_kept_off_nowhere() -> None:
    slices = [a_slice_object(a_device("d1", model="a"), a_device("d2", model="b"))]
    cluster = held(slices=slices)
    other = {"cel": {"expression": "device.attributes['moorage.dev'].model == 'c'"}}
    cluster.requests = {"next": [a_request(selectors=[other])]}

    assert kept_off(cluster, asks(cluster)) == {}


def test_the_pod_itself_goes_anywhere() -> None:
    cluster = held()
    pod = cluster.world.facts.pod(pod_uid("w"))
    assert pod is not None

    assert kept_off(cluster, pod) == {}


def test_of_pods_that_are_alike_each_may_have_what_is_held_for_the_other() -> None:
    """kube-scheduler chooses which of the devices each of them gets."""
    cluster = a_cluster(*FULL, waiting(), waiting(name="w2"), queues=QUEUES)
    for name in ("w", "w2"):
        take = cluster.decide(name)
        assert isinstance(take, Targets)
        cluster.world.hold(take.hold)
    for name in ("r1", "r2"):
        cluster.world.delete_pod(pod_uid(name))
        put(cluster.world, a_claim(name))
    devices, pod = (
        HeldDevices(cluster.world, cluster.inventory()),
        cluster.world.facts.pod(pod_uid("w")),
    )
    assert pod is not None

    assert devices.kept_off(pod) == {}
    for device in ("d1", "d2"):
        assert devices.why_taken(pod, [granted(cluster, "w", device)], "n") == ""


def test_bind_refuses_the_held_device_and_filter_keeps_the_pod_off_that_node() -> None:
    cluster = held()
    cluster.slices = (a_slice_object("d1", "d2", "d3"),)
    pod = asks(cluster)
    devices = HeldDevices(cluster.world, cluster.inventory())
    assert devices.kept_off(pod) == {}

    why = devices.why_taken(pod, [granted(cluster, "next", "d1")], "n")

    assert why == (
        "DeviceHeld: device moorage.dev/n/d1 is held for Pod default/w: Pod default/next gets"
        " another, or waits until Pod default/w has it."
    )
    put(cluster.world, a_claim("next"))
    assert set(devices.kept_off(pod)) == {"n"}
    cluster.world.end_hold(pod_uid("w"))
    assert devices.kept_off(pod) == {}


def test_bind_lets_other_devices_pass() -> None:
    cluster = held()
    cluster.slices = (a_slice_object("d1", "d2", "d3"),)
    pod = asks(cluster)
    devices = HeldDevices(cluster.world, cluster.inventory())

    assert devices.why_taken(pod, [granted(cluster, "next", "d3")], "n") == ""


@pytest.mark.parametrize(("slots", "is_refused"), [(1, False), (2, True)])
def test_of_a_device_with_slots_what_is_not_held_is_for_others(
    slots: int, is_refused: bool
) -> None:
    shared = a_slice_object(a_device("d1", slots=3))
    cluster = held(use("robots", "r1", on="d1", slots=3), slices=[shared])
    cluster.request = {}
    pod = asks(cluster, slots=slots)
    devices = HeldDevices(cluster.world, cluster.inventory())
    (hold,) = cluster.world.assumptions.holds.of_devices()
    assert [slots for _, slots in hold.devices] == [1]

    why = devices.why_taken(pod, [granted(cluster, "next", "d1", slots + is_refused)], "n")

    assert bool(why) == is_refused


@pytest.mark.parametrize(("offered", "kept"), [(["d1"], {"n", "m"}), (["d1", "d2"], set())])
def test_a_held_device_that_several_nodes_see_is_held_on_all_of_them(
    offered: list[str], kept: set[str]
) -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["here"]}]}]
    seen = {"allNodes": None, "nodeSelector": {"nodeSelectorTerms": terms}}
    shared = a_slice_object("d1", node="", **seen)
    cluster = a_cluster(
        use("robots", "r1", on="d1", pool="shared"), waiting(), queues=QUEUES, slices=[shared]
    )
    cluster.nodes |= {"m": a_node_object("m"), "far": a_node_object("far", labels={"zone": "far"})}
    take = cluster.decide()
    assert isinstance(take, Targets)
    cluster.world.hold(take.hold)
    cluster.world.delete_pod(pod_uid("r1"))
    put(cluster.world, a_claim("r1"))
    cluster.slices = (a_slice_object(*offered, node="", **seen),)

    assert set(kept_off(cluster, asks(cluster))) == kept


def test_whoever_joins_a_claim_that_is_used_gets_nothing_that_is_held() -> None:
    shared = a_slice_object(a_device("d1", slots=3))
    cluster = held(use("robots", "r1", on="d1", slots=3), slices=[shared])
    used, own = use("robots", "team", on="d1", slots=2)
    put(cluster.world, used, own)
    joiner = a_pod("joiner", queue="robots", claims=["team"])
    put(cluster.world, joiner)
    devices = HeldDevices(cluster.world, cluster.inventory())
    claims = cluster.world.facts.claims_of(joiner)

    assert devices.why_taken(joiner, claims, "n") == ""


def test_slots_that_are_left_for_the_hold_are_not_counted_beside_it() -> None:
    shared = a_slice_object(a_device("d1", slots=3))
    cluster = a_cluster(
        use("robots", "r1", on="d1", slots=2), waiting(slots=2), queues=QUEUES, slices=[shared]
    )
    cluster.request = {"slots": 2}
    take = cluster.decide()
    assert isinstance(take, Targets)
    cluster.world.hold(take.hold)
    devices = HeldDevices(cluster.world, cluster.inventory())
    pod = asks(cluster, slots=1)

    assert devices.why_taken(pod, [granted(cluster, "next", "d1", 1)], "n") == ""
    assert devices.why_taken(pod, [granted(cluster, "next", "d1", 2)], "n") != ""
