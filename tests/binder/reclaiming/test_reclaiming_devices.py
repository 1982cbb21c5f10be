"""The shell of reclaim where devices are lacking: what is read for that, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binder.reclaiming import apiserver_reclaims
from binder.reclaiming.apiserver_device_wants import DeviceWants
from tests.binder.fake_apiserver import Fault
from tests.binder.reclaiming.test_reclaiming import Scene
from tests.scheduler_plugin.builders import (
    a_claim_object,
    a_pod,
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

    def __init__(self, robots: int = 0) -> None:
        super().__init__()
        self.waiting = []
        put(self.world, a_queue("root", onvif=(-1, -1)))
        put(self.world, a_queue("mine", parent="root", onvif=(1, -1)))
        put(self.world, a_queue("robots", parent="root", onvif=(robots, -1)))
        self.server.slices = [a_slice_object("d1")]
        self.server.put_node(a_node_object())
        result = a_result(pool="n", device="d1")
        fields = {"results": [result], "pods": ["r1"], "queue": "robots"}
        held = a_claim_object("r1", requests=[a_request()], **fields)
        self.server.put("resourceclaims", held)
        self.note_claim(self.server.claim("r1"))
        self.put_pod("r1", "robots", node="n", phase="Running")
        self.put_claim("w")
        self.put_pod("w", "mine", status=UNSCHEDULABLE)

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
    devices = DeviceWants(scene.reclaimer.reader, scene.world, scene.reclaimer.clock)
    put(scene.world, *waiting)
    for pod in (*waiting, *waiting):
        devices.follow(pod.uid)
    assert devices.waiting(lambda uid: True) == [pod_uid(name) for name in ("p2", "p1", "p0")]

    scene.world.delete_pod(pod_uid("p1"))
    put(scene.world, replace(waiting[0], priority=9))
    for pod in waiting:
        devices.follow(pod.uid)
    assert devices.waiting(lambda uid: True) == [pod_uid("p0"), pod_uid("p2")]
    assert devices.waiting(lambda uid: uid != pod_uid("p0")) == [pod_uid("p2")]


def test_ten_that_wait_in_vain_keep_nobody_from_their_turn() -> None:
    scene = DeviceScene()
    devices = DeviceWants(scene.reclaimer.reader, scene.world, scene.reclaimer.clock)

    def come(name: str, priority: int) -> None:
        pod = a_pod(name, claims=["w"], status=UNSCHEDULABLE)
        put(scene.world, replace(pod, priority=priority))
        devices.follow(pod_uid(name))

    for number in range(30):
        come(f"p{number}", 100 - number)
    first = devices.waiting(lambda uid: True)
    assert first == [pod_uid(f"p{number}") for number in range(10)]

    come("late", 0)

    asked = {*first}
    for _ in range(5):
        found = devices.waiting(lambda uid: True)
        assert found[:5] == first[:5]
        asked |= {*found}
    assert asked == {pod_uid("late"), *(pod_uid(f"p{number}") for number in range(30))}
