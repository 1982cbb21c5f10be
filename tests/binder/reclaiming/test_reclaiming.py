"""The shell of reclaim: asked, held, told, evicted, and what is left by whoever was killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from binder.api import ReclaimConfig, Reclaimer
from binder.reclaiming.apiserver_targets import by_namespaces
from kube.events.api import Event
from kube.kinds import CLAIMS, PODS
from kube.objects import JsonObject
from kube.shapes.times import timestamp
from scheduler_plugin.accounting.world_changes import PodChanged, QueueChanged
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.names import NO_QUEUE, POD_GROUP_ANNOTATION, QueueName
from scheduler_plugin.objects.nodes import node_view
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodGroupView
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from scheduler_plugin.reclaiming.targets import Targets
from tests.binder.builders import a_binder
from tests.binder.evictions.test_disruption_budgets import a_budget
from tests.binder.virtual_time import in_virtual_time
from tests.fakes.apiserver import RefusedError
from tests.fakes.claim_server import QUEUE, FakeClaimServer
from tests.fakes.fence import FakeFence
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim_object,
    a_pod,
    a_pod_object,
    a_queue,
    a_request,
    a_result,
    a_world,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.devices_builders import a_node_object, a_slice_object

CONDITION = "moorage.dev/Reclaiming"


class Scene:
    """Queue mine waits for room that robots use beyond their quota; an API server in memory."""

    def __init__(self, server: FakeClaimServer | None = None) -> None:
        self.server = server or FakeClaimServer()
        self.events: list[Event] = []
        self.world = a_world(
            a_queue("root", onvif=(2, 2)),
            a_queue("mine", parent="root", onvif=(1, 2)),
            a_queue("robots", parent="root", onvif=(0, 2)),
        )
        self.waiting = [pod_uid("w")]
        self.inventory = Inventory()
        self.inventory.nodes.put_node(node_view(a_node_object(allocatable={"pods": "110"})))
        self.offer("d1", "d2", "d3", "d4")
        self.config = ReclaimConfig(short_of_room=lambda: self.waiting, inventory=self.inventory)
        self.reclaimer = self._reclaimer()

    def _reclaimer(self) -> Reclaimer:
        binder = a_binder(self.server, FakeFence(), self.note_claim, self.note_pod)
        clock = lambda: NOW + timedelta(seconds=now())  # noqa: E731
        return binder.reclaimer(self.world, self.config, self.events.append, clock, now)

    def limit_evictions(self, most: int) -> None:
        """No more pods than these may be evicted for one queue within a minute."""
        self._configure(replace(self.config, most_in_a_minute=most))

    def switch_off(self) -> None:
        self._configure(replace(self.config, is_off=True))

    def _configure(self, config: ReclaimConfig) -> None:
        self.config = config
        self.reclaimer = self._reclaimer()
        self.reclaimer.begin()

    def offer(self, *devices: str | JsonObject) -> None:
        """These are all devices there are."""
        found = a_slice_object(*devices, metadata={"name": "all"})
        self.inventory.devices.put_slice(published_slice(found))

    def note_claim(self, claim: JsonObject) -> None:
        put(self.world, claim_view(claim, queue_label=QUEUE))

    def note_pod(self, pod: JsonObject) -> None:
        view = pod_view(pod, SETTINGS)
        put(self.world, view)
        if view.on_node is not None:
            self.inventory.nodes.put_pod(view.on_node)
        else:
            self.inventory.nodes.delete_pod(view.uid)
        self.reclaimer.changed(PodChanged(pod_uid(pod["metadata"]["name"])))

    def put_pod(self, name: str, queue: str, **fields: Any) -> None:
        body = a_pod_object(name, queue=queue, claims=[name], **fields)
        self.server.put(PODS, body)
        self.note_pod(self.server.pod(name))

    def put_claim(self, name: str, *pods: str, queue: str = "") -> None:
        results = {"results": [a_result()], "pods": pods, "queue": queue} if pods else {}
        self.server.put(CLAIMS, a_claim_object(name, requests=[a_request()], **results))
        self.note_claim(self.server.claim(name))

    def use(self, name: str, **fields: Any) -> None:
        self.put_claim(name, name, queue="robots")
        self.put_pod(name, "robots", node="n", phase="Running", **fields)

    def wait(self, name: str = "w", **fields: Any) -> None:
        self.put_claim(name)
        self.put_pod(name, "mine", **fields)

    def never_ends(self, name: str) -> None:
        """It is being deleted, and its grace is over at 30 s."""
        self.leaves(name, timedelta(seconds=30))

    def leaves(self, name: str, grace: timedelta) -> None:
        """It is being deleted, and its grace is over so long after 0 s."""
        pod = self.server.pod(name)
        pod["metadata"]["deletionTimestamp"] = timestamp(NOW + grace)
        self.note_pod(pod)

    async def at(self, moment: float) -> None:
        """Let time pass until so many seconds after the start."""
        await asyncio.sleep(moment - now())

    def remove(self, name: str) -> None:
        self.world.delete_pod(pod_uid(name))
        self.inventory.nodes.delete_pod(pod_uid(name))
        self.world.delete_claim(claim_view(self.server.claim(name), queue_label=QUEUE).uid)
        self.reclaimer.changed(PodChanged(pod_uid(name)))

    @property
    def evicted(self) -> list[str]:
        return [str(name) for name in self.server.evicted]

    @property
    def held(self) -> list[str]:
        return [hold.name for hold in self.world.assumptions.holds]

    def condition(self, name: str = "w") -> tuple[str, str]:
        conditions = self.server.pod(name)["status"].get("conditions", ())
        found = [c for c in conditions if c["type"] == CONDITION]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    @property
    def told(self) -> list[tuple[str, str]]:
        return sorted((event.reason, event.regarding.name) for event in self.events)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.reclaimer.begin()
        task = asyncio.create_task(self.reclaimer.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def rounds(self) -> None:
        await asyncio.sleep(1)


def now() -> float:
    """Seconds since the start."""
    return asyncio.get_running_loop().time()


def a_scene() -> Scene:
    scene = Scene()
    scene.use("r1", priority=1, spec={"priority": 1})
    scene.use("r2")
    scene.wait()
    return scene


@in_virtual_time
async def test_whoever_was_chosen_goes_and_the_room_is_held_by_name() -> None:
    scene = a_scene()

    async with scene.running():
        await scene.rounds()

    assert scene.evicted == ["r2"]
    assert scene.held == ["Pod default/w"]
    assert scene.condition() == ("True", "Reclaimed")
    assert scene.world.held(QueueName("root")).items == (("onvif", 1),)
    assert scene.told == [
        ("ClaimReclaimed", "r2"),
        ("ClaimsReclaimed", "robots"),
        ("Reclaimed", "r2"),
        ("RoomReclaimed", "mine"),
        ("RoomReclaimed", "w"),
    ]
    assert len({event.note for event in scene.events}) == 1


@in_virtual_time
async def test_nobody_goes_while_a_queue_has_an_entry_of_another_version() -> None:
    """Nobody is bound to what would be freed."""
    scene = a_scene()
    scene.world.put_queue(a_queue("odd", resources=[{"deviceClass": "gpu", "per": "node"}]))

    async with scene.running():
        await scene.rounds()
        assert scene.evicted == []
        scene.world.delete_queue(QueueName("odd"))
        scene.reclaimer.changed(QueueChanged(QueueName("odd")))
        await scene.at(10)

    assert scene.evicted == ["r2"]


@in_virtual_time
async def test_nobody_else_goes_while_the_evicted_one_takes_its_time() -> None:
    scene = a_scene()

    async with scene.running():
        await scene.rounds()
        scene.never_ends("r2")
        await scene.at(61)
        await scene.at(89)

    assert scene.evicted == ["r2"]
    assert scene.held == ["Pod default/w"]


@in_virtual_time
async def test_one_that_never_ends_lets_another_go_once_and_then_the_queue_says_why() -> None:
    scene = a_scene()

    async with scene.running():
        await scene.rounds()
        scene.never_ends("r2")
        await scene.at(96)
        assert scene.evicted == ["r2", "r1"]
        scene.never_ends("r1")
        for moment in (120, 152, 181, 300, 4000, 8000):
            await scene.at(moment)

    assert scene.evicted == ["r2", "r1"]
    assert (scene.held, scene.condition()) == ([], ("False", "TimeOver"))
    why = "2 claims or pods have users that are terminating, and do not end"
    assert why in scene.world.unmet[QueueName("mine")]


@in_virtual_time
async def test_whoever_may_go_goes_though_one_never_ended_that_was_to_go_before() -> None:
    scene = a_scene()
    scene.server.protected.add("r1")

    async with scene.running():
        await scene.rounds()
        scene.never_ends("r2")
        for moment in (61, 91, 121, 182):
            await scene.at(moment)
        assert (scene.held, scene.condition()) == ([], ("False", "TimeOver"))
        assert scene.evicted == ["r2"]
        scene.server.protected.clear()
        while scene.evicted == ["r2"]:
            await scene.at(now() + 1)
            assert now() < 300

    assert scene.evicted == ["r2", "r1"]
    assert scene.held == ["Pod default/w"]


@in_virtual_time
async def test_a_hold_that_is_not_taken_ends_and_nobody_is_evicted_for_it_again() -> None:
    scene = a_scene()

    async with scene.running():
        await scene.rounds()
        scene.remove("r2")
        await scene.at(65)
        assert (scene.held, scene.condition()) == ([], ("False", "TimeOver"))
        scene.use("r3")
        await scene.at(120)

    assert scene.evicted == ["r2"]


@in_virtual_time
async def test_with_the_binding_the_hold_and_its_condition_are_over() -> None:
    scene = a_scene()

    async with scene.running():
        await scene.rounds()
        scene.remove("r2")
        bound = scene.server.pod("w")
        bound["spec"]["nodeName"] = "n"
        scene.server.put(PODS, bound)
        scene.waiting = []
        scene.note_pod(scene.server.pod("w"))
        await scene.rounds()

    assert (scene.held, scene.condition()) == ([], ("False", "Bound"))


@in_virtual_time
async def test_whoever_leads_next_takes_the_hold_up_and_evicts_nobody_twice() -> None:
    first = a_scene()
    async with first.running():
        await first.rounds()
    pod = first.server.pod("r2")
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:30Z"
    first.server.put(PODS, pod)

    second = Scene(first.server)
    for name in ("r1", "r2", "w"):
        second.note_claim(second.server.claim(name))
        put(second.world, pod_view(second.server.pod(name), SETTINGS))
    async with second.running():
        await second.rounds()

    assert second.held == ["Pod default/w"]
    assert second.evicted == ["r2"]


@in_virtual_time
async def test_for_a_group_room_is_held_by_the_name_of_each_and_taken_once() -> None:
    scene = Scene()
    put(scene.world, a_queue("mine", parent="root", onvif=(2, 2)))
    scene.world.put_group(PodGroupView("default", "train", NO_QUEUE, 2))
    scene.use("r1")
    scene.use("r2")
    for name in ("w", "w2"):
        scene.wait(name, annotations={POD_GROUP_ANNOTATION: "train"})

    async with scene.running():
        await scene.rounds()
        assert sorted(scene.evicted) == ["r1", "r2"]
        assert scene.held == ["Pod default/w", "Pod default/w2"]
        assert scene.condition() == scene.condition("w2") == ("True", "Reclaimed")
        scene.remove("r1")
        scene.remove("r2")
        await scene.at(65)
        assert scene.held == []
        scene.use("r3")
        scene.use("r4")
        scene.waiting = [pod_uid("w2")]
        await scene.at(120)

    assert sorted(scene.evicted) == ["r1", "r2"]


@in_virtual_time
async def test_a_budget_sends_it_to_the_next_and_is_told() -> None:
    scene = a_scene()
    scene.server.protected.add("r2")

    async with scene.running():
        await scene.rounds()

    assert scene.evicted == ["r1"]
    assert ("ReclaimHeldBack", "w") in scene.told


@in_virtual_time
async def test_where_nobody_can_go_the_queue_says_so() -> None:
    scene = a_scene()
    scene.server.protected |= {"r1", "r2"}

    async with scene.running():
        await scene.rounds()

    assert (scene.evicted, scene.held, scene.condition()) == ([], [], ("", ""))
    assert "may not be evicted now" in scene.world.unmet[QueueName("mine")]


async def killed_after(steps: int) -> Scene:
    """Who leads next, after the first was killed when so many steps of the loop were done."""
    first = a_scene()
    first.reclaimer.begin()
    task = asyncio.create_task(first.reclaimer.run())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    for name in first.evicted:
        first.server.pod(name)["metadata"]["deletionTimestamp"] = timestamp(NOW)
    second = Scene(first.server)
    for name in ("r1", "r2", "w"):
        second.note_claim(second.server.claim(name))
        second.note_pod(second.server.pod(name))
    return second


@in_virtual_time
async def test_killed_anywhere_nobody_is_evicted_twice_and_what_was_begun_is_held() -> None:
    evicted_before = set[int]()
    for steps in range(0, 120, 2):
        second = await killed_after(steps)
        evicted_before.add(len(second.evicted))

        async with second.running():
            await second.rounds()

        assert second.evicted == ["r2"], steps
        assert (second.held, second.condition()[0]) == (["Pod default/w"], "True"), steps
    assert evicted_before == {0, 1}, "some were killed before the eviction, and some after"


async def most_at_one_time(*budgets: dict[str, Any]) -> int:
    """How many requests are under way at most while three pods get room back."""
    scene, under_way, most = Scene(), 0, 0

    async def a_while(_: str) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1

    scene.server.budgets += budgets
    put(scene.world, a_queue("root", onvif=(3, 3)), a_queue("mine", parent="root", onvif=(3, 3)))
    for number in range(3):
        scene.use(f"r{number}")
        scene.wait(f"w{number}")
    scene.waiting = [pod_uid(f"w{number}") for number in range(3)]
    scene.server.next_happening = a_while
    async with scene.running():
        await scene.at(3)
    assert sorted(scene.evicted) == ["r0", "r1", "r2"]
    return most


@in_virtual_time
async def test_sets_of_a_namespace_without_budgets_go_at_one_time() -> None:
    assert await most_at_one_time() == 3


@in_virtual_time
async def test_sets_of_a_namespace_that_has_a_budget_go_one_after_the_other() -> None:
    """It may be about several of them."""
    assert await most_at_one_time(a_budget(allowed=3, matchLabels={"app": "other"})) == 1


class FakeServerWithoutEvictions(FakeClaimServer):
    """Fails at each eviction, as where a webhook of it is broken."""

    def _evict(self, path: str, body: Mapping[str, Any], *, is_dry: bool) -> dict[str, Any]:
        raise RefusedError(500, "InternalError", "failed calling webhook")


@in_virtual_time
async def test_an_api_server_that_fails_at_evictions_is_asked_less_and_less_often() -> None:
    scene = Scene(FakeServerWithoutEvictions())
    scene.use("r1")
    scene.use("r2")
    scene.wait()

    said: set[str] = set()
    scene.reclaimer.on_unmet_changed = lambda: said.update(scene.world.unmet.values())

    async with scene.running():
        await scene.at(60)
        asked = len(scene.server.asked)
        await scene.at(120)

    assert 0 < asked < 60
    assert len(scene.server.asked) - asked < 40
    assert any("failed at evictions" in why for why in said)


@in_virtual_time
async def test_who_is_known_to_wait_a_moment_after_a_start_is_not_forgotten() -> None:
    scene = a_scene()
    scene.waiting = []

    async with scene.running():
        await scene.rounds()
        scene.waiting = [pod_uid("w")]
        await scene.at(7)

    assert scene.evicted == ["r2"]


def test_sets_that_have_any_namespace_in_common_go_one_after_the_other() -> None:
    def a_take(*namespaces: str) -> Targets:
        pods = [a_pod(f"of-{name}", namespace=name) for name in namespaces]
        return cast(Targets, SimpleNamespace(pods=pods))

    one, other, both, alone = a_take("a"), a_take("b"), a_take("a", "b"), a_take("c")

    groups = by_namespaces([one, other, alone, both])

    assert dict(groups) == {
        frozenset("c"): [alone],
        frozenset("ab"): [one, other, both],
    }
