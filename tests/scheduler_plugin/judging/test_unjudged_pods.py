"""Pods that got a node without a verdict: charged to no queue that they may not use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binder.queues.apiserver_warnings import WarningRecorder
from kube.events.api import Event
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import NO_CHARGES, ResourceKey
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.objects.pods import NamespaceView, PodView
from tests.fakes.fence import FakeFence
from tests.scheduler_plugin.builders import a_pod, a_queue, a_world, amounts, put, usage

ONVIF = ResourceKey("onvif")
CLOSED = {"matchLabels": {"team": "victim"}}
MIRROR = {"kubernetes.io/config.mirror": "hash"}


def unjudged(name: str = "a", amount: int = 1, **overrides: Any) -> PodView:
    asks = {"akri.sh/onvif": amount}
    fields = {"queue": "victim", "node": "n", "requests": asks, "unjudged": True, **overrides}
    return a_pod(name, **fields)


def static(name: str = "a", amount: int = 2) -> PodView:
    return unjudged(name, amount, annotations=MIRROR)


def a_cluster(selector: Any, *pods: PodView) -> World:
    """Node `n` sees one Instance with room for two, and another node one more."""
    world = a_world(a_queue("victim", namespaceSelector=selector, onvif=(4, 4)), *pods)
    world.put_instance(InstanceView("onvif-a", ONVIF, ("n", "m"), 2))
    world.put_instance(InstanceView("onvif-b", ONVIF, ("m",), 5))
    return world


@pytest.mark.parametrize("pod", [static(), unjudged()])
def test_label_alone_charges_no_queue_that_the_namespace_may_not_use(pod: PodView) -> None:
    assert usage(a_cluster(CLOSED, pod), "victim") == NO_CHARGES


def test_static_pod_is_charged_what_it_asks_for() -> None:
    world = a_cluster({}, static(amount=3))

    world.delete_instance("onvif-a")

    assert usage(world, "victim") == amounts(onvif=3)


def test_who_holds_slots_changes_no_sum() -> None:
    world = a_cluster({}, static())
    held = InstanceView("onvif-b", ONVIF, ("m",), 5, held=(("m", 1),))
    before = usage(world, "victim")

    assert not world.put_instance(held)
    assert world.facts.catalog.instance_named("onvif-b") == held
    assert usage(world, "victim") == before
    assert world.put_instance(replace(held, capacity=6))


def test_pod_is_charged_once_its_namespace_may_use_the_queue() -> None:
    world = a_cluster(CLOSED, unjudged())

    world.put_namespace(NamespaceView("default", {"team": "victim"}))
    by_label = usage(world, "victim")
    world.put_namespace(NamespaceView("default", {}))
    closed = usage(world, "victim")
    put(world, a_queue("victim", namespaceSelector={}))
    opened = usage(world, "victim")

    assert (by_label, closed, opened) == (amounts(onvif=1), NO_CHARGES, amounts(onvif=1))


def test_pod_whose_queue_is_not_known_yet_is_charged_to_nobody_meanwhile() -> None:
    world = a_world(unjudged(), namespaces=())
    world.put_configuration(ONVIF)
    world.put_namespace(NamespaceView("default", {}))
    before = usage(world, "victim")

    put(world, a_queue("victim"))

    assert (before, usage(world, "victim")) == (NO_CHARGES, amounts(onvif=1))


def test_what_was_judged_stays_charged_whatever_the_queue_says_later() -> None:
    world = a_cluster({}, a_pod("a", queue="victim", node="n", requests={"akri.sh/onvif": 3}))

    put(world, a_queue("victim", namespaceSelector=CLOSED))
    world.delete_namespace("default")

    assert usage(world, "victim") == amounts(onvif=3)


def test_people_are_told_once_what_is_charged_to_nobody() -> None:
    told: list[Event] = []
    world = a_cluster(CLOSED, static(), a_pod("b", node="n"))
    recorder = WarningRecorder(world, FakeFence(), told.append)

    recorder.look()
    recorder.look()

    (event,) = told
    assert (event.reason, event.regarding.name) == ("Unattributed", "a")
    assert event.note == (
        "Pod default/a was bound without a verdict, and its namespace may not use queue"
        ' "victim": its 2 onvif are charged to no queue.'
    )
