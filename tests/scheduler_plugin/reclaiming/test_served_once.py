"""Nobody goes twice for the same pod, nor for what others have to spare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler_plugin.judging.equivalence_classes import equivalence_class
from scheduler_plugin.objects.names import NO_QUEUE, POD_GROUP_ANNOTATION
from scheduler_plugin.objects.pods import PodGroupView
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
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
    a_slice_object,
    device,
)
from tests.scheduler_plugin.reclaiming.test_devices import FULL, a_cluster, use, waiting
from tests.scheduler_plugin.reclaiming.test_node_placements import (
    QUEUES,
    VOLUME,
    full,
    gone,
    served,
    with_nodes,
)

OF_GANG: Any = {"annotations": {POD_GROUP_ANNOTATION: "train"}}
TWO = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]


def a_gang(nodes: int, least: int, *members: str, free: int = 0) -> Cluster:
    """Pods of a PodGroup that kube-scheduler tried, beside nodes of one device each."""
    slices, users = full(nodes)
    heads = [waiting(name=name, **OF_GANG) for name in members]
    cluster = with_nodes(a_cluster(*users[free:], *heads, slices=slices, queues=QUEUES), nodes)
    cluster.world.put_group(PodGroupView("default", "train", NO_QUEUE, least))
    return cluster


def carry_out(cluster: Cluster, take: Targets) -> None:
    """What the shell does: hold, and evict; those are on their way out."""
    for hold in take.holds:
        cluster.world.hold(hold)
    for pod in take.pods:
        put(cluster.world, a_used_pod(pod.name, "robots", pod.name, node=pod.node, deleting=True))


@pytest.mark.parametrize("count", [2, 4])
def test_for_a_gang_that_was_tried_as_many_go_as_it_has_pods(count: int) -> None:
    members = [f"w{number}" for number in range(count)]
    cluster = a_gang(20, count, *members)

    found = served(cluster, *members)

    assert [len(each) for each in gone(found)] == [count, *[0] * (count - 1)]
    assert isinstance(found[0], Targets)
    carry_out(cluster, found[0])
    assert gone(served(cluster, *members)) == [[]] * count


def test_nobody_goes_for_a_gang_that_was_tried_and_finds_enough_free() -> None:
    cluster = a_gang(8, 2, "w1", "w2", free=2)

    assert all(isinstance(each, InProgress) for each in served(cluster, "w1", "w2"))


def test_one_more_of_a_gang_that_has_enough_goes_by_itself() -> None:
    cluster = a_gang(20, 4, "w1", "w2", "w3", "w4", "w5")

    found = gone(served(cluster, "w1", "w2", "w3", "w4", "w5"))

    assert [len(each) for each in found] == [4, 0, 0, 0, 1]


def test_for_a_gang_that_shares_a_claim_one_device_is_taken() -> None:
    slices, users = full(8)
    pods = [
        a_pod(name, queue="mine", claims=["one"], status=UNSCHEDULABLE, **OF_GANG)
        for name in ("w1", "w2")
    ]
    shared = [a_claim("one", requests=[a_request()]), *pods]
    cluster = with_nodes(a_cluster(*users, shared, slices=slices, queues=QUEUES), 8)
    cluster.world.put_group(PodGroupView("default", "train", NO_QUEUE, 2))

    assert [len(each) for each in gone(served(cluster, "w1", "w2"))] == [1, 0]


@pytest.mark.parametrize("spec", [{}, VOLUME], ids=["plain", "volume"])
def test_where_a_pod_is_to_be_bound_is_where_it_goes(spec: dict[str, Any]) -> None:
    slices, users = full(3)
    cluster = with_nodes(a_cluster(*users, waiting(), slices=slices, queues=QUEUES), 3)
    cluster.waiting = {"spec": spec}
    take = cluster.decide()
    assert isinstance(take, Targets)

    carry_out(cluster, take)

    assert isinstance(cluster.decide(), InProgress)


@pytest.mark.parametrize("pods", [("y",), ()], ids=["reserved", "refused by Bind"])
def test_a_held_device_that_another_was_given_is_not_lost(pods: tuple[str, ...]) -> None:
    cluster = a_cluster(*FULL, waiting(), queues=[*TWO, a_queue("others", onvif=(0, -1))])
    take = cluster.decide()
    assert isinstance(take, Targets)
    assert [held for held, _ in take.hold.devices] == [device("d1")]
    cluster.world.hold(take.hold)
    cluster.world.delete_pod(pod_uid("r1"))
    cluster.world.delete_claim(claim_uid("r1"))
    other = a_pod("y", queue="others", claims=["y"], status=UNSCHEDULABLE)
    given = an_allocated_claim("y", *pods, results=[a_result(pool="n", device="d1")])
    put(cluster.world, other, given)

    assert isinstance(cluster.decide(), InProgress)


def test_of_a_shared_device_only_the_slots_are_promised_that_are_held() -> None:
    shared = a_slice_object(a_device("d1", slots=4), a_device("d2", slots=4))
    users = [use("robots", f"r{n}", on=f"d{n}", slots=4, priority=n) for n in (1, 2)]
    heads = [waiting(name=name, slots=1) for name in ("w1", "w2")]
    queues = [a_queue("mine", onvif=(4, -1)), a_queue("robots", onvif=(0, -1))]
    cluster = a_cluster(*users, *heads, slices=[shared], queues=queues)
    cluster.request = {"slots": 1}
    take = cluster.decide("w1")
    assert isinstance(take, Targets)

    carry_out(cluster, take)

    assert isinstance(cluster.decide("w2"), InProgress)


def test_the_own_queue_s_pods_go_after_those_of_queues_above_their_share() -> None:
    users = [use("mine", "low", on="d1"), use("robots", "r1", on="d2")]
    cluster = a_cluster(*users, waiting(priority=5), queues=TWO)

    assert cluster.taken() == ["r1"]


def test_nobody_goes_for_a_pod_that_may_not_borrow_yet() -> None:
    users = [use("mine", "low1", on="d1"), use("mine", "low2", on="d2")]
    cluster = a_cluster(*users, waiting(priority=5), queues=[a_queue("mine", onvif=(1, 2))])
    assert len(cluster.taken()) == 1
    pod = cluster.world.facts.pod(pod_uid("w"))
    assert pod is not None

    cluster.world.assumptions.backoffs.evicted(equivalence_class(pod, cluster.world.facts), NOW)

    found = cluster.decide()
    assert isinstance(found, NoCandidates)
    assert "such pods borrow again from" in found.sentence


def test_those_of_a_line_whose_devices_are_free_elsewhere_are_not_in_the_way() -> None:
    """Of an eight-device node all go; of the others, which were looked at on the way, nobody."""
    slices, users = full(4, each=4)
    head = waiting(requests=[a_request(count=4)])
    queues = [a_queue("mine", onvif=(4, -1)), a_queue("robots", onvif=(0, -1))]
    cluster = with_nodes(a_cluster(*users, head, slices=slices, queues=queues), 4)

    take = cluster.decide()

    assert isinstance(take, Targets)
    assert len(take.pods) == 4
    assert len({pod.node for pod in take.pods}) == 1


def test_a_queue_without_a_quota_is_not_below_it_however_much_is_asked_for() -> None:
    many = [a_request(name="a", count=33)]
    queues = [a_queue("mine", onvif=(0, -1)), a_queue("robots", onvif=(0, -1))]
    cluster = a_cluster(*FULL, waiting(requests=many), queues=queues)

    found = cluster.decide()

    assert isinstance(found, NoCandidates)
    assert found.unmet is None


def test_where_nobody_can_say_what_would_do_it_is_not_tried_again_and_again() -> None:
    many = [a_request(name="a", count=33)]
    queues = [
        a_queue("root", onvif=(40, 40)),
        a_queue("mine", parent="root", onvif=(40, -1)),
        a_queue("robots", parent="root", onvif=(0, -1)),
    ]
    users = [use("robots", f"r{n}", on=f"d{n}") for n in range(10)]
    offered = a_slice_object(*(f"d{n}" for n in range(10)))
    cluster = a_cluster(*users, waiting(requests=many), slices=[offered], queues=queues)
    cluster.keeps_needs = True
    assert isinstance(cluster.decide(), Targets)

    cluster.left_out = frozenset([""])

    found = cluster.decide()
    assert isinstance(found, NoCandidates)
    most = "more than 32 devices or 16 combinations of alternatives"
    assert f"{most} are not looked at" in found.sentence
    assert replace(found, sentence="") == NoCandidates("", found.unmet)
