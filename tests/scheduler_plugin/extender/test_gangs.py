"""Pods of one PodGroup without a gate: Filter admits the first only where all of them fit."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.accounting.assumptions import ASSUMED_TTL, RETRIED_TTL
from scheduler_plugin.extender.messages import Passed
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.names import NO_QUEUE, QUOTA_GATE, QueueName, Reason
from scheduler_plugin.objects.pods import PodGroupView
from tests.scheduler_plugin.builders import (
    UNSCHEDULABLE,
    a_claim,
    a_group,
    a_queue,
    amounts,
    pod_uid,
    put,
    usage,
)
from tests.scheduler_plugin.extender.test_kube_scheduler import Scene

GATES = {"schedulingGates": [{"name": QUOTA_GATE}]}


def a_scene(limit: int, **least: int) -> Scene:
    """PodGroups, and for each pod a claim of its name."""
    scene = Scene()
    put(scene.cluster.world, a_queue("vision", onvif=(0, limit)))
    for name, count in least.items():
        scene.cluster.world.put_group(PodGroupView("default", name, NO_QUEUE, count))
        scene.cluster.store(*(a_claim(f"{name}{number}") for number in range(count + 1)))
    return scene


def a_member(scene: Scene, name: str, **fields: Any) -> dict[str, Any]:
    group = {"pod-group-name": name[0]}
    return scene.pod(name, claims=[name], queue="vision", annotations=group, **fields)


def test_room_is_kept_for_all_once_the_first_is_admitted() -> None:
    scene = a_scene(3, g=2, h=2)
    g = [a_member(scene, f"g{n}") for n in range(2)]
    h = [a_member(scene, f"h{n}") for n in range(2)]

    assert scene.extender.filter(g[0]) == Passed()
    assumed = scene.cluster.world.assumptions
    assert assumed.usage.of(QueueName("vision")) == amounts(onvif=2)
    refused = scene.extender.filter(h[0])
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.OVER_LIMIT
    assert refused.sentence.startswith(
        "PodGroup default/h is admitted as a whole, 2 pods together: "
    )
    assert scene.extender.filter(g[1]) == Passed()
    assert len(assumed) == 2
    assert usage(scene.cluster.world, "vision") == amounts()


def test_a_refused_group_keeps_nothing_and_its_preemption_takes_nothing() -> None:
    scene = a_scene(1, g=2)
    first, _ = (a_member(scene, f"g{n}") for n in range(2))

    for _ in range(2):
        assert isinstance(scene.extender.filter(first), Refused)
        assert isinstance(scene.extender.preempt(first), Refused)
    assert len(scene.cluster.world.assumptions) == 0


def test_too_few_are_refused_with_the_number() -> None:
    """Those at the gate do not count: it lets go of a group as a whole."""
    scene = a_scene(9, g=3)
    first = a_member(scene, "g0")
    a_member(scene, "g1")
    a_member(scene, "g2", spec=GATES)

    refused = scene.extender.filter(first)

    assert isinstance(refused, Refused)
    assert refused.reason is Reason.POD_GROUP_INCOMPLETE
    assert refused.sentence == (
        "PodGroup default/g is admitted as a whole, 3 pods together, and has 2."
    )
    a_member(scene, "g3")
    assert scene.extender.filter(first) == Passed()


# Groups that kube-scheduler tries as a whole: no event tells that it tried one in vain once more.


def a_scene_of_an_own_group(**fields: Any) -> tuple[Scene, list[dict[str, Any]], dict[str, Any]]:
    """A group of two pods, and a pod of another group that fits only without them."""
    scene = Scene()
    put(scene.cluster.world, a_queue("vision", onvif=(0, 2)), a_group("g", min_member=2))
    scene.cluster.store(*(a_claim(name) for name in ("g0", "g1", "other")))
    pods = [scene.pod(f"g{n}", claims=[f"g{n}"], queue="vision", **fields) for n in range(2)]
    return scene, pods, scene.pod("other", claims=["other"], queue="vision")


@pytest.mark.parametrize("status", [{}, UNSCHEDULABLE])
def test_a_group_that_is_tried_again_keeps_its_room_for_a_moment_only(
    status: dict[str, Any],
) -> None:
    scene, pods, other = a_scene_of_an_own_group(group="g")
    for pod in pods:
        assert scene.extender.filter(pod) == Passed()
    assert isinstance(scene.extender.filter(other), Refused)
    for n in range(2):
        scene.pod(f"g{n}", claims=[f"g{n}"], queue="vision", group="g", status=status)

    for pod in pods:
        assert scene.extender.filter(pod) == Passed()

    assert isinstance(scene.extender.filter(other), Refused)
    scene.now += RETRIED_TTL
    assert scene.extender.filter(other) == Passed()
    assert isinstance(scene.extender.filter(pods[0]), Refused)


def test_a_group_that_found_its_nodes_keeps_its_room_until_it_is_bound() -> None:
    scene, pods, other = a_scene_of_an_own_group(group="g")
    for pod in pods * 2:
        assert scene.extender.filter(pod) == Passed()

    for n in range(2):
        named = {"nominatedNodeName": "node-a"}
        scene.pod(f"g{n}", claims=[f"g{n}"], queue="vision", group="g", status=named)

    scene.now += ASSUMED_TTL - RETRIED_TTL / 2
    assert isinstance(scene.extender.filter(other), Refused)
    scene.now += RETRIED_TTL
    assert scene.extender.filter(other) == Passed()


def test_a_group_that_is_at_bind_keeps_its_room() -> None:
    scene, pods, other = a_scene_of_an_own_group(group="g")
    for pod in pods * 2:
        scene.extender.filter(pod)

    for n in range(2):
        scene.cluster.world.assumptions.binding_requested(pod_uid(f"g{n}"))

    scene.now += 2 * ASSUMED_TTL
    assert isinstance(scene.extender.filter(other), Refused)


def test_a_pod_that_is_tried_alone_keeps_its_room_for_a_minute_each_time() -> None:
    """The extender is asked last: what is tried in vain does not come so far."""
    scene, pods, other = a_scene_of_an_own_group()
    for pod in pods * 2:
        assert scene.extender.filter(pod) == Passed()

    scene.now += ASSUMED_TTL - RETRIED_TTL
    assert isinstance(scene.extender.filter(other), Refused)
