"""Pods of one PodGroup without a gate: Filter admits the first only where all of them fit."""

from __future__ import annotations

from typing import Any

from scheduler_plugin.extender.messages import Passed
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.names import NO_QUEUE, QUOTA_GATE, QueueName, Reason
from scheduler_plugin.objects.pods import PodGroupView
from tests.scheduler_plugin.builders import a_claim, a_queue, amounts, put, usage
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
