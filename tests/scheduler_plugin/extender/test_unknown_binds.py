"""Bindings of which no answer told the end, and what is believed of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from scheduler_plugin.extender.kube_scheduler_unknown_binds import AGAIN_SECONDS, LATE_SECONDS
from scheduler_plugin.extender.messages import Passed
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.bindings import BindFailed
from scheduler_plugin.objects.names import QueueName
from tests.scheduler_plugin.builders import a_claim, a_pod_object, amounts, pod_uid, usage
from tests.scheduler_plugin.extender.test_kube_scheduler import Scene

VISION = QueueName("vision")


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def not_answered(scene: Scene) -> None:
    """Pod `a` of queue vision, which has a limit of one, was to be bound; nobody says whether."""
    body = scene.pod("a", queue="vision", requests={"akri.sh/onvif": 1})
    assert scene.extender.filter(body) == Passed()
    scene.binder.failures.append(BindFailed("no answer", is_certain=False))
    assert await scene.bind("a") == "no answer"


async def look(scene: Scene, after: float) -> Charges:
    """Look so many seconds later; what the queue is believed to use."""
    scene.now += timedelta(seconds=after)
    await scene.extender.look_at_unknown_binds()
    return scene.cluster.world.assumptions.usage.of(VISION)


def fits(scene: Scene) -> bool:
    """Whether another pod of the queue does."""
    body = scene.pod("b", queue="vision", requests={"akri.sh/onvif": 1})
    return scene.extender.filter(body) == Passed()


async def test_a_pod_that_is_not_bound_after_all_makes_room_once_nothing_can_come_late(
    scene: Scene,
) -> None:
    await not_answered(scene)

    assert await look(scene, LATE_SECONDS - 1) == amounts(onvif=1)
    assert await look(scene, 2) == NO_CHARGES
    assert fits(scene)


async def test_a_claims_owner_counts_no_more_either(scene: Scene) -> None:
    scene.sharers(a="vision")
    scene.binder.failures.append(BindFailed("no answer", is_certain=False))
    await scene.bind("a")

    await look(scene, LATE_SECONDS + 1)

    assert len(scene.cluster.world.assumptions) == 0


async def test_a_pod_that_was_bound_counts_as_charged_though_the_watch_is_silent(
    scene: Scene,
) -> None:
    await not_answered(scene)
    scene.cluster.lags = True
    scene.pod("a", queue="vision", requests={"akri.sh/onvif": 1}, node="node-a")

    await look(scene, LATE_SECONDS + 1)

    scene.cluster.catch_up()
    assert usage(scene.cluster.world, "vision") == amounts(onvif=1)
    assert not fits(scene)


async def test_it_is_believed_for_as_long_as_the_api_server_is_away(scene: Scene) -> None:
    await not_answered(scene)
    scene.cluster.is_away = True

    assert await look(scene, LATE_SECONDS + 1) == amounts(onvif=1)
    scene.cluster.is_away = False
    assert await look(scene, AGAIN_SECONDS / 2) == amounts(onvif=1)
    assert await look(scene, AGAIN_SECONDS) == NO_CHARGES


def gone(scene: Scene) -> None:
    scene.cluster.pods.pop("a")


def made_anew(scene: Scene) -> None:
    scene.pod("a", uid="another")


@pytest.mark.parametrize("become", [gone, made_anew])
async def test_a_pod_that_went_unseen_holds_nothing(
    scene: Scene, become: Callable[[Scene], None]
) -> None:
    await not_answered(scene)
    scene.cluster.lags = True
    become(scene)

    assert await look(scene, LATE_SECONDS + 1) == NO_CHARGES


async def test_the_next_attempt_has_its_own_time(scene: Scene) -> None:
    await not_answered(scene)
    scene.now += timedelta(seconds=LATE_SECONDS - 1)
    scene.binder.failures.append(BindFailed("no answer", is_certain=False))
    await scene.bind("a")

    assert await look(scene, 2) == amounts(onvif=1)
    assert await look(scene, LATE_SECONDS) == NO_CHARGES


async def test_an_attempt_that_begins_while_it_is_looked_at_is_believed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await not_answered(scene)
    read = scene.cluster.refresh_pod

    async def meanwhile(namespace: str, name: str) -> object:
        found = await read(namespace, name)
        monkeypatch.undo()
        scene.binder.failures.append(BindFailed("no answer", is_certain=False))
        await scene.bind("a")
        return found

    monkeypatch.setattr(scene.cluster, "refresh_pod", meanwhile)

    assert await look(scene, LATE_SECONDS + 1) == amounts(onvif=1)


@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "refused"])
async def test_nothing_is_read_where_the_answer_said_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_bound: bool
) -> None:
    scene.cluster.store(a_claim())
    body = scene.pod("a", queue="vision", claims=["cam"])
    assert scene.extender.filter(body) == Passed()
    scene.cluster.reserve("cam", "a")
    if not is_bound:
        scene.binder.failures.append(BindFailed("the node is gone", is_certain=True))
    assert (await scene.bind("a") == "") == is_bound
    assert scene.extender.filter(a_pod_object("a", queue="vision", claims=["cam"])) == Passed()
    monkeypatch.setattr(scene.cluster, "refresh_pod", None)

    await look(scene, LATE_SECONDS + 1)

    assert scene.cluster.world.facts.pod(pod_uid("a")) is not None
