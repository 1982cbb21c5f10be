"""Pods of a PodGroup that kube-scheduler queues as one leave the gate with the first of them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.objects.names import QUOTA_GATE
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.group_gates import left_behind
from tests.scheduler_plugin.builders import a_pod, a_world, pod_uid, put


def a_member(name: str, *gates: str, group: str = "train", **fields: Any) -> PodView:
    spec = {
        "schedulingGates": [{"name": gate} for gate in gates],
        "schedulingGroup": {"podGroupName": group} if group else None,
    }
    asked = {"queue": "a", "requests": {"akri.sh/onvif": 1}, **fields}
    return a_pod(name, spec=spec, **asked)


AWAY = a_member("away")


def left(*pods: PodView) -> list[str]:
    """The names of the pods that leave the gate with others."""
    world = a_world()
    put(world, *pods)
    return [removal.name for removal in left_behind(pods[0], world.facts)]


def test_all_that_wait_leave_the_gate_with_the_first() -> None:
    assert left(AWAY, a_member("b", QUOTA_GATE), a_member("c", QUOTA_GATE)) == ["b", "c"]


def test_the_gate_stays_while_all_are_at_it() -> None:
    assert left(a_member("b", QUOTA_GATE), a_member("c", QUOTA_GATE)) == []


@pytest.mark.parametrize(
    "other",
    [
        a_member("bound", node="n"),
        a_member("over", phase="Succeeded"),
        a_member("without-devices", requests={}),
        a_member("elsewhere", group="eval"),
        a_member("of-kai", group="", annotations={"pod-group-name": "train"}),
    ],
    ids=lambda pod: pod.name,
)
def test_pods_that_kube_scheduler_does_not_hold_open_the_gate_for_none(other: PodView) -> None:
    assert left(a_member("b", QUOTA_GATE), other) == []


def test_a_pod_with_a_gate_of_others_keeps_both() -> None:
    pods = (AWAY, a_member("b", QUOTA_GATE, "example.com/hold"), a_member("c", "example.com/hold"))
    assert left(*pods) == []


def test_each_is_named_with_its_uid_and_queue() -> None:
    world = a_world()
    put(world, AWAY, a_member("b", QUOTA_GATE))
    (removal,) = left_behind(AWAY, world.facts)
    assert (removal.namespace, removal.uid, removal.queue) == ("default", pod_uid("b"), "a")
