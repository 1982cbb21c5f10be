"""The shell of reclaim where devices are lacking: what is read for that, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from binder.reclaiming import apiserver_device_wants, apiserver_reclaims
from binder.reclaiming.apiserver_device_wants import DeviceWants
from binder.reclaiming.turns import Turns
from driver.api import timestamp
from scheduler_plugin.accounting.world_changes import PodChanged
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.devices import decide_device
from scheduler_plugin.reclaiming.wants import Nobody
from tests.binder.fake_apiserver import FakeApiServer, Fault
from tests.binder.reclaiming.test_reclaiming import Scene
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_claim_object,
    a_pod,
    a_pod_object,
    a_queue,
    a_request,
    a_result,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    a_node_object,
    a_slice_object,
)


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver_reclaims, "TICK_SECONDS", 0.0)


class DeviceScene(Scene):
    """No limit is reached: a node's only device is used by robots, beyond their quota."""

    def __init__(self, robots: int = 0, server: FakeApiServer | None = None) -> None:
        super().__init__(server)
        self.waiting = []
        put(self.world, a_queue("root", onvif=(-1, -1)))
        put(self.world, a_queue("mine", parent="root", onvif=(1, -1)))
        put(self.world, a_queue("robots", parent="root", onvif=(robots, -1)))
        self.server.slices = [a_slice_object("d1")]
        self.server.put_node(a_node_object())
        self.use_device("r1", "d1")
        self.put_claim("w")
        self.put_pod("w", "mine", status=UNSCHEDULABLE)

    def use_device(self, name: str, device: str) -> None:
        result = a_result(pool="n", device=device)
        fields = {"results": [result], "pods": [name], "queue": "robots"}
        held = a_claim_object(name, requests=[a_request()], **fields)
        self.server.put("resourceclaims", held)
        self.note_claim(self.server.claim(name))
        self.put_pod(name, "robots", node="n", phase="Running")

    @property
    def read(self) -> set[str]:
        asked = (request.removeprefix("GET ") for request in self.server.asked)
        return {what for what in asked if what in ("resourceslices", "n")}


async def test_a_device_is_freed_and_held_and_the_condition_says_that_it_is_one() -> None:
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()

    assert scene.evicted == ["r1"]
    assert scene.held == ["Pod default/w"]
    assert scene.condition() == ("True", "DeviceReclaimed")
    assert ("DeviceReclaimed", "w") in scene.told
    assert [hold.is_device for hold in scene.world.assumptions.holds] == [True]


@pytest.mark.parametrize(
    ("stuck", "held"), [("stranger", ["Pod default/w"]), ("r1", [])], ids=["another", "it"]
)
async def test_a_device_is_held_as_long_as_whoever_has_it_may_still_end(
    stuck: str, held: list[str]
) -> None:
    scene = DeviceScene()
    scene.server.put("pods", a_pod_object("stranger", node="n", phase="Running"))
    scene.note_pod(scene.server.pod("stranger"))

    async with scene.running():
        await scene.rounds()
        for name in ("r1", "stranger"):
            pod = scene.server.pod(name)
            grace_over = NOW + timedelta(minutes=-10 if name == stuck else 10)
            pod["metadata"]["deletionTimestamp"] = timestamp(grace_over)
            scene.note_pod(pod)
        scene.moment = 61.0
        await scene.rounds()

    assert (scene.evicted, scene.held) == (["r1"], held)


async def test_a_device_that_is_never_given_back_lets_the_next_go_and_the_queue_says_why() -> None:
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()
        scene.never_ends("r1")
        for moment in (61, 91, 121, 182):
            await scene.at(moment)
        assert (scene.evicted, scene.held) == (["r1"], [])
        why = scene.world.unmet[QueueName("mine")]
        assert "Pod default/r1 is being deleted without an end" in why
        scene.server.slices = [a_slice_object("d1", "d2")]
        scene.use_device("r2", "d2")
        await scene.at(190)

    assert scene.evicted == ["r1", "r2"]
    assert scene.held == ["Pod default/w"]


async def test_nothing_is_read_where_nobody_is_over_the_quota() -> None:
    scene = DeviceScene(robots=1)

    async with scene.running():
        await scene.rounds()

    assert (scene.evicted, scene.read) == ([], set())


async def test_a_pod_that_was_not_tried_wants_no_device() -> None:
    scene = DeviceScene()
    scene.put_pod("w", "mine", status={"conditions": []})

    async with scene.running():
        await scene.rounds()

    assert (scene.evicted, scene.read) == ([], set())


async def test_nobody_goes_while_it_cannot_be_read_what_would_serve() -> None:
    scene = DeviceScene()
    scene.server.will(Fault.FAILS)

    async with scene.running():
        await scene.rounds()
        assert scene.evicted == []
        scene.moment = 10.0
        await scene.rounds()

    assert scene.evicted == ["r1"]


async def test_whoever_leads_next_holds_a_device_of_the_class_without_knowing_which() -> None:
    first = DeviceScene()
    async with first.running():
        await first.rounds()

    second = DeviceScene()
    second.note_pod(first.server.pod("w"))
    second.reclaimer.begin()

    (hold,) = second.world.assumptions.holds.of_devices()
    assert (hold.name, hold.devices, hold.awaits) == ("Pod default/w", frozenset(), ())


async def test_whoever_leads_next_holds_it_as_long_as_the_evicted_may_take_to_end() -> None:
    first = DeviceScene()
    async with first.running():
        await first.rounds()
    second = DeviceScene()
    second.leaves("r1", timedelta(minutes=5))
    second.use_device("never-ends", "d2")
    second.leaves("never-ends", timedelta(minutes=-5))
    second.note_pod(first.server.pod("w"))

    async with second.running():
        await second.at(61)
        assert second.held == ["Pod default/w"]
        second.remove("r1")
        await second.at(100)
        assert second.held == ["Pod default/w"]
        await second.at(122)

    assert second.held == []
    assert second.evicted == []


def test_the_most_urgent_have_their_turn_first_whoever_came_when() -> None:
    scene = DeviceScene()
    created = ["2026-11-21T10:00:03Z", "2026-11-21T10:00:01Z", "2026-11-21T10:00:02Z"]
    waiting = [
        replace(
            a_pod(f"p{number}", claims=["w"], status=UNSCHEDULABLE),
            created=time,
            priority=number // 2,
        )
        for number, time in enumerate(created)
    ]
    wants = scene.reclaimer
    devices = DeviceWants(wants.reader, scene.world, wants.clock, wants.monotonic)
    put(scene.world, *waiting)
    for pod in (*waiting, *waiting):
        devices.follow(pod.uid)
    assert list(devices) == [pod_uid(name) for name in ("p2", "p1", "p0")]

    scene.world.delete_pod(pod_uid("p1"))
    put(scene.world, replace(waiting[0], priority=9))
    for pod in waiting:
        devices.follow(pod.uid)
    assert list(devices) == [pod_uid("p0"), pod_uid("p2")]


def test_some_that_wait_in_vain_keep_nobody_from_their_turn() -> None:
    turns, pods = Turns(), [pod_uid(f"p{number}") for number in range(30)]
    assert list(turns.order(pods)) == pods
    for uid in pods:
        turns.asked(uid)

    assert next(turns.order([*pods, pod_uid("late")])) == pod_uid("late")
    turns.asked(pod_uid("late"))

    seen = set[PodUid]()
    for _ in range(31):
        first, second = islice(turns.order([*pods, pod_uid("late")]), 2)
        turns.asked(first)
        assert pods[0] in (first, second)
        seen.add(first)
    assert seen == {*pods, pod_uid("late")}


def a_crowd(scene: DeviceScene, count: int) -> None:
    """Pods that wait for the device in vain, since their queue is guaranteed none."""
    put(scene.world, a_queue("others", parent="root", onvif=(0, -1)))
    for number in range(count):
        name = f"v{number}"
        pod = a_pod(name, queue="others", claims=[name], status=UNSCHEDULABLE)
        put(scene.world, a_claim(name), pod)
        scene.reclaimer.changed(PodChanged(pod.uid))


def an_urgent_one(scene: DeviceScene) -> None:
    scene.put_claim("urgent")
    scene.put_pod("urgent", "mine", status=UNSCHEDULABLE, spec={"priority": 9})


def decisions_of(scene: DeviceScene, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who was decided about, each for 0.06 s and `slow` for a second; nobody goes."""
    names: list[str] = []

    async def decide(_: Any, pod: PodView, away: object, stepped: Any, **__: object) -> Nobody:
        def steps() -> Iterator[Nobody | None]:
            for _ in range(100 if pod.name == "slow" else 6):
                scene.moment += 0.01
                yield None
            yield Nobody("", pod.queue)

        found: Nobody = await stepped(steps())
        names.append(pod.name)
        return found

    monkeypatch.setattr(DeviceWants, "decided", decide)
    yielding = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _: yielding(0))
    return names


async def test_before_a_thousand_that_wait_a_new_one_has_its_turn_within_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = DeviceScene()
    decided = decisions_of(scene, monkeypatch)
    a_crowd(scene, 1000)

    async with scene.running():
        await scene.rounds()
        before = len(decided)
        an_urgent_one(scene)
        await scene.rounds()

    assert "urgent" in decided[before : before + 2]


async def test_a_round_of_many_is_cut_and_the_next_goes_on_with_those_who_had_no_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between rounds queues are told why, holds end, and others of the process have their time."""
    scene, rounds = DeviceScene(), list[tuple[int, float]]()
    decided = decisions_of(scene, monkeypatch)
    scene.remove("w")
    a_crowd(scene, 30)
    scene.reclaimer.told = lambda: rounds.append((len(decided), round(scene.moment, 2)))

    async with scene.running():
        await scene.rounds()
        # It ends with the decision during which the time was over, and who was let in meanwhile.
        assert rounds == [(3, 0.18)]
        for _ in range(6):
            await scene.rounds()

    assert {*decided} == {f"v{number}" for number in range(30)}


async def test_while_a_long_decision_goes_on_a_new_pod_has_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = DeviceScene()
    decided = decisions_of(scene, monkeypatch)
    scene.remove("w")
    scene.put_claim("slow")
    scene.put_pod("slow", "mine", status=UNSCHEDULABLE)

    async with scene.running():
        for _ in range(30):
            await asyncio.sleep(0)
        assert 0.0 < scene.moment < 0.5
        an_urgent_one(scene)
        await scene.rounds()
        await scene.rounds()

    assert decided == ["urgent", "slow"]


async def test_pods_that_are_alike_share_the_answer_that_nobody_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene, decided = DeviceScene(robots=1), list[str]()
    a_crowd(scene, 20)
    more_urgent = a_pod("x", queue="others", claims=["x"], status=UNSCHEDULABLE)
    put(scene.world, a_claim("x"), replace(more_urgent, priority=1))
    scene.reclaimer.changed(PodChanged(pod_uid("x")))
    decide = decide_device

    def noted(pod: PodView, *args: Any) -> Any:
        steps = decide(pod, *args)

        def run() -> Any:
            decided.append(pod.name)
            yield from steps

        return run()

    monkeypatch.setattr(apiserver_device_wants, "decide_device", noted)

    async with scene.running():
        await scene.rounds()

    assert sorted(decided) == ["v0", "w", "x"]
