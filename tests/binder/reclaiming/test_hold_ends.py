"""How what is held ends: a minute after it is there, and never by nobody's leaving."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kube.kinds import PODS
from kube.shapes.times import timestamp
from scheduler_plugin.objects.names import QueueName
from tests.binder.reclaiming.test_reclaiming import Scene, a_scene, now
from tests.binder.reclaiming.test_reclaiming_devices import DeviceScene
from tests.binder.virtual_time import in_virtual_time
from tests.fakes.claim_server import FakeClaimServer
from tests.scheduler_plugin.builders import NOW
from tests.scheduler_plugin.reclaiming.devices_builders import UNSCHEDULABLE


class FakeServerOfLateBudgets(FakeClaimServer):
    """Says yes when it is asked, and no when it comes to it."""

    def _evict(self, path: str, body: Mapping[str, Any], *, is_dry: bool) -> dict[str, Any]:
        if not is_dry:
            self.protected |= {"r1", "r2"}
        return super()._evict(path, body, is_dry=is_dry)


@pytest.mark.parametrize("end", [30, 50, 58, 61, 110])
@in_virtual_time
async def test_a_pod_has_a_minute_from_when_its_device_is_free(end: float) -> None:
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()
        scene.leaves("r1", timedelta(seconds=now() + end + 1))
        await scene.at(end)
        scene.end("r1")
        await scene.at(end + 50)
        assert (scene.held, scene.missed()) == (["Pod default/w"], "")
        await scene.at(end + 75)

    assert scene.held == []
    assert '"n" until' in scene.missed()


@in_virtual_time
async def test_a_pod_has_a_minute_from_when_somebody_leads_who_could_have_it_bound() -> None:
    first = DeviceScene()
    async with first.running():
        await first.rounds()
    second = DeviceScene()
    second.server.put(PODS, first.server.pod("w"))
    second.note_pod(second.server.pod("w"))
    second.reclaimer.begin()
    second.end("r1")
    await second.at(500)

    async with second.running():
        await second.at(540)
        assert (second.held, second.missed()) == (["Pod default/w"], "")


@in_virtual_time
async def test_whoever_leads_next_waits_for_those_who_leave_room() -> None:
    first = a_scene()
    async with first.running():
        await first.rounds()
    second, start = Scene(first.server), now()
    gone_at = NOW + timedelta(seconds=start + 600)
    second.server.pod("r2")["metadata"]["deletionTimestamp"] = timestamp(gone_at)
    for name in ("r1", "r2", "w"):
        second.note_claim(second.server.claim(name))
        second.note_pod(second.server.pod(name))

    async with second.running():
        await second.at(start + 120)

    assert (second.held, second.evicted) == (["Pod default/w"], ["r2"])
    assert second.condition() == ("True", "Reclaimed")


@in_virtual_time
async def test_where_nobody_leaves_after_all_nothing_is_held_for_long() -> None:
    scene = Scene(FakeServerOfLateBudgets())
    scene.use("r1")
    scene.use("r2")
    scene.wait()

    async with scene.running():
        await scene.rounds()
        assert scene.held == ["Pod default/w"]
        await scene.at(90)

    assert scene.evicted == []
    assert scene.held == []
    assert not scene.world.held(QueueName("root")).items


@in_virtual_time
async def test_what_somebody_wrote_is_held_no_longer_than_a_minute_and_no_more_than_is_asked() -> (
    None
):
    scene = DeviceScene(robots=9)
    scene.offer("d1", "d2")
    scene.use_device("r2", "d2")
    message = 'Held: moorage.dev/n/d1 (1), moorage.dev/n/d2 (1) on node "n".'
    told = {"type": "moorage.dev/Reclaiming", "status": "True", "reason": "DeviceReclaimed"}
    status = {"conditions": [*UNSCHEDULABLE["conditions"], {**told, "message": message}]}
    scene.put_pod("w", "mine", status=status)

    async with scene.running():
        (hold,) = scene.world.assumptions.holds.of_devices()
        assert len(hold.devices) == 1
        await scene.at(75)

    assert scene.held == []
    assert scene.condition() == ("False", "TimeOver")


@in_virtual_time
async def test_nothing_is_held_for_a_pod_that_went_while_a_cycle_was_computed() -> None:
    """A cycle sleeps between its steps, and holds at its end what it found to be free."""
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()
        (found,) = scene.world.assumptions.holds.of_devices()
        for name in ("r1", "w"):
            scene.remove(name)
        assert scene.held == []

        scene.reclaimer.holds.keep_free([found])

        assert scene.held == []


@in_virtual_time
async def test_what_is_held_for_nobody_ends_at_once() -> None:
    """Such a hold would keep its device from everybody for as long as this process leads."""
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()
        (found,) = scene.world.assumptions.holds.of_devices()
        scene.remove("w")

        scene.reclaimer.holds.begin([found])
        await scene.rounds()

    assert scene.held == []
