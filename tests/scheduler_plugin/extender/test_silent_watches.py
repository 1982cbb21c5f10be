"""A binding that was carried out counts however long the watch is silent about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.extender.messages import NotAnswered, Passed
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.amounts import NO_CHARGES
from scheduler_plugin.objects.bindings import BindFailed
from scheduler_plugin.objects.names import QueueName, Reason
from tests.scheduler_plugin.builders import a_claim, a_pod_object, amounts, pod_uid, usage
from tests.scheduler_plugin.extender.test_kube_scheduler import Scene

VISION = QueueName("vision")
AS_IT_WAS = a_pod_object("a", queue="vision", requests={"akri.sh/onvif": 1})
LONG = timedelta(hours=1)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def bound_unseen(scene: Scene, **asks: Any) -> None:
    """Pod `a` of queue vision is bound, which has a limit of one, and the watch says nothing."""
    body = scene.pod("a", queue="vision", **asks)
    assert scene.extender.filter(body) == Passed()
    for claim in asks.get("claims", ()):
        scene.cluster.reserve(claim, "a")
    scene.cluster.lags = True
    assert await scene.bind("a") == ""
    scene.now += LONG


def refused(scene: Scene) -> bool:
    """Whether another pod of the queue is."""
    scene.cluster.lags = False
    answer = scene.extender.filter(scene.pod("b", queue="vision", requests={"akri.sh/onvif": 1}))
    return isinstance(answer, Refused) and answer.reason is Reason.OVER_LIMIT


async def test_bound_pod_of_the_device_plugin_does_not_stop_counting(scene: Scene) -> None:
    await bound_unseen(scene, requests={"akri.sh/onvif": 1})

    assert refused(scene)
    assert scene.cluster.world.assumptions.usage.of(VISION) == amounts(onvif=1)


async def test_bound_pod_with_a_claim_does_not_stop_counting(scene: Scene) -> None:
    scene.cluster.store(a_claim())
    await bound_unseen(scene, claims=["cam"])

    assert refused(scene)


async def test_binding_that_may_exist_after_all_does_not_stop_counting(scene: Scene) -> None:
    scene.extender.filter(scene.pod("a", queue="vision", requests={"akri.sh/onvif": 1}))
    scene.binder.failures.append(BindFailed("no answer", is_certain=False))
    await scene.bind("a")
    scene.now += LONG

    assert refused(scene)


async def test_pod_counts_as_charged_once_it_is_seen(scene: Scene) -> None:
    await bound_unseen(scene, requests={"akri.sh/onvif": 1})

    scene.cluster.catch_up()

    assert usage(scene.cluster.world, "vision") == amounts(onvif=1)
    assert scene.cluster.world.assumptions.usage.of(VISION) == NO_CHARGES


async def test_pod_that_is_known_to_be_gone_counts_no_more(scene: Scene) -> None:
    await bound_unseen(scene, requests={"akri.sh/onvif": 1})

    scene.cluster.world.delete_pod(pod_uid("a"))

    assert not refused(scene)


async def test_filter_passes_a_pod_that_may_be_bound_and_bind_looks_at_it(scene: Scene) -> None:
    """kube-scheduler started anew before it had heard of the binding."""
    await bound_unseen(scene, requests={"akri.sh/onvif": 1})

    assert scene.extender.filter(AS_IT_WAS) == Passed()
    assert scene.cluster.world.assumptions.usage.of(VISION) == amounts(onvif=1)
    assert await scene.bind("a") == ""
    assert list(scene.binder.bound) == ["a"]
    assert usage(scene.cluster.world, "vision") == amounts(onvif=1)


async def test_filter_makes_no_believed_binding_lapse(scene: Scene) -> None:
    """No Bind follows: another of kube-scheduler's filters may find that no node fits."""
    await bound_unseen(scene, requests={"akri.sh/onvif": 1})

    assert scene.extender.filter(AS_IT_WAS) == Passed()
    scene.now += LONG

    assert refused(scene)


async def test_pod_whose_binding_got_lost_is_judged_and_bound_anew(scene: Scene) -> None:
    body = scene.pod("a", queue="vision", requests={"akri.sh/onvif": 1})
    scene.extender.filter(body)
    scene.binder.failures.append(BindFailed("no answer", is_certain=False))
    await scene.bind("a")

    assert scene.extender.filter(body) == Passed()
    assert await scene.bind("a") == ""
    assert usage(scene.cluster.world, "vision") == amounts(onvif=1)


async def test_nobody_leaves_for_a_pod_that_may_be_bound(scene: Scene) -> None:
    await bound_unseen(scene, requests={"akri.sh/onvif": 1})

    assert isinstance(scene.extender.preempt(AS_IT_WAS), NotAnswered)


async def test_decision_that_was_not_carried_out_lapses_as_ever(scene: Scene) -> None:
    scene.extender.filter(scene.pod("a", queue="vision", requests={"akri.sh/onvif": 1}))
    scene.now += ASSUMED_TTL

    assert not refused(scene)


async def test_binding_that_failed_for_certain_counts_no_more(scene: Scene) -> None:
    scene.extender.filter(scene.pod("a", queue="vision", requests={"akri.sh/onvif": 1}))
    scene.binder.failures.append(BindFailed("the node is gone", is_certain=True))
    await scene.bind("a")

    assert not refused(scene)
