"""The shell of PodGroups that lost pods: told, given time, evicted as one, whoever is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from kube.events.api import Event
from kube.kinds import PODS
from kube.objects import JsonObject
from scheduler_plugin.accounting.world_changes import GroupChanged, PodChanged
from scheduler_plugin.objects.names import NO_QUEUE, POD_GROUP_ANNOTATION, STALE_CONDITION
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodGroupView
from tests.binder.builders import a_binder
from tests.binder.virtual_time import in_virtual_time
from tests.fakes.apiserver import Fault
from tests.fakes.claim_server import FakeClaimServer
from tests.fakes.fence import FakeFence
from tests.left_overs import kept_in
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_pod_object,
    a_queue,
    a_world,
    an_allocated_claim,
    pod_uid,
    put,
)


class Scene:
    """PodGroup g, which needs three pods, of which a and b are there."""

    def __init__(
        self, server: FakeClaimServer | None = None, fence: FakeFence | None = None
    ) -> None:
        self.server = server or FakeClaimServer()
        self.events: list[Event] = []
        self.world = a_world(a_queue("vision", onvif=(9, 9)))
        self.world.serve_groups(served=True)
        group = PodGroupView("default", "g", NO_QUEUE, 3, api_version="scheduling.run.ai/v2alpha2")
        self.world.put_group(group)
        self.controller = a_binder(self.server, fence, note_pod=self.note_pod).gang_controller(
            self.world,
            timedelta(seconds=60),
            self.events.append,
            lambda: NOW + timedelta(seconds=now()),
        )
        for name in ("a", "b"):
            if server is None:
                self.put_pod(name)
            else:
                self.note_pod(self.server.pod(name))
            put(self.world, an_allocated_claim(name, name, queue="vision"))

    def put_pod(self, name: str) -> None:
        fields = {"queue": "vision", "claims": [name], "node": "n", "phase": "Running"}
        annotations = {POD_GROUP_ANNOTATION: "g"}
        self.server.put(PODS, a_pod_object(name, annotations=annotations, **fields))
        put(self.world, an_allocated_claim(name, name, queue="vision"))
        self.note_pod(self.server.pod(name))

    def note_pod(self, pod: JsonObject) -> None:
        put(self.world, pod_view(pod, SETTINGS))
        self.controller.changed(PodChanged(pod_uid(pod["metadata"]["name"])))

    def condition(self, name: str) -> str:
        conditions = self.server.pod(name)["status"].get("conditions", ())
        return next((c["status"] for c in conditions if c["type"] == STALE_CONDITION), "")

    @property
    def evicted(self) -> list[str]:
        return [str(name) for name in self.server.evicted]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.controller.begin()
        task = asyncio.create_task(self.controller.run())
        try:
            yield
        finally:
            task.cancel()

    async def at(self, seconds: float) -> None:
        """Let time pass until so many seconds after the start."""
        await asyncio.sleep(seconds - now())


def now() -> float:
    return asyncio.get_running_loop().time()


@in_virtual_time
async def test_they_are_told_and_go_as_one_after_a_minute() -> None:
    scene = Scene()
    async with scene.running():
        await scene.at(1)
        assert (scene.condition("a"), scene.condition("b")) == ("True", "True")
        await scene.at(59)
        assert scene.evicted == []
        await scene.at(62)
        assert sorted(scene.evicted) == ["a", "b"]
        await scene.at(65)
    assert sorted(scene.evicted) == ["a", "b"]
    told = [(e.reason, e.regarding.kind, e.regarding.name) for e in scene.events]
    assert told[:2] == [("PodGroupStale", "PodGroup", "g"), ("PodGroupStale", "Queue", "vision")]
    assert sorted(told[2:]) == [
        ("PodGroupGivenUp", "Pod", "a"),
        ("PodGroupGivenUp", "Pod", "b"),
        ("PodGroupGivenUp", "PodGroup", "g"),
        ("PodGroupGivenUp", "Queue", "vision"),
    ]
    (why,) = {event.note for event in scene.events[2:]}
    assert "so they are evicted" in why
    assert len({event.note for event in scene.events[:2]}) == 1


@in_virtual_time
async def test_whoever_comes_back_in_time_saves_them() -> None:
    scene = Scene()
    async with scene.running():
        await scene.at(30)
        scene.put_pod("c")
        await scene.at(31)
        assert (scene.condition("a"), scene.condition("b")) == ("False", "False")
        await scene.at(500)
    assert scene.evicted == []


@in_virtual_time
async def test_a_restart_in_the_middle_goes_on_from_there() -> None:
    first = Scene()
    async with first.running():
        await first.at(1)
    second = Scene(first.server)
    async with second.running():
        await second.at(40)
        assert second.evicted == []
        await second.at(62)
    assert sorted(second.evicted) == ["a", "b"]


@in_virtual_time
async def test_whoever_is_left_by_one_that_was_killed_goes_too() -> None:
    """It had evicted one of them; nobody is evicted twice."""
    first = Scene()
    async with first.running():
        await first.at(1)
    second = Scene(first.server)
    second.world.delete_pod(pod_uid("a"))
    async with second.running():
        await second.at(63)
    assert second.evicted == ["b"]


@in_virtual_time
async def test_a_budget_keeps_all_of_them_and_it_is_tried_again() -> None:
    scene = Scene()
    scene.server.protected.add("b")
    async with scene.running():
        await scene.at(1)
        await scene.at(62)
        assert scene.evicted == []
        scene.server.protected.clear()
        await scene.at(70)
    assert sorted(scene.evicted) == ["a", "b"]


@in_virtual_time
async def test_a_group_that_goes_spares_them() -> None:
    scene = Scene()
    async with scene.running():
        await scene.at(1)
        scene.world.delete_group("default", "g")
        scene.controller.changed(GroupChanged("default", "g"))
        await scene.at(100)
        assert scene.condition("a") == "False"
    assert scene.evicted == []


@in_virtual_time
async def test_a_process_without_the_lease_writes_nothing_until_it_has_it() -> None:
    fence = FakeFence(open_for=0)
    scene = Scene(fence=fence)
    async with scene.running():
        await scene.at(30)
        assert (scene.condition("a"), scene.server.asked) == ("", [])
        fence.open_for = None
        await scene.at(36)
        assert (scene.condition("a"), scene.condition("b")) == ("True", "True")


@in_virtual_time
async def test_what_fails_is_tried_again_and_nothing_is_kept_of_a_group_that_is_gone() -> None:
    scene = Scene()
    scene.server.will(Fault.FAILS, Fault.REFUSED)
    async with scene.running():
        await scene.at(40)
        assert (scene.condition("a"), scene.condition("b")) == ("True", "True")
        await scene.at(66)
        assert sorted(scene.evicted) == ["a", "b"]
        for name in ("a", "b"):
            scene.world.delete_pod(pod_uid(name))
            scene.controller.changed(PodChanged(pod_uid(name)))
        await scene.at(100)
    assert kept_in(scene.controller, scene.world, scene.controller.writes).keys() <= {
        "._queue._queue._heap"
    }
