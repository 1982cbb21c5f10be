"""The shell of reclaim where devices are lacking: whole lines, holds, what was in vain."""

from __future__ import annotations

from datetime import timedelta

import pytest

from binder.reclaiming.prometheus_reclaims import PUT_OFF
from kube.kinds import CLAIMS, PODS
from kube.shapes.times import timestamp
from scheduler_plugin.accounting.world_changes import PodChanged
from scheduler_plugin.objects.held_texts import names_of
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.nodes import node_view
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from tests.binder.reclaiming.test_reclaiming import Scene, now
from tests.binder.virtual_time import in_virtual_time
from tests.fakes.claim_server import FakeClaimServer
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim_object,
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
    device,
)

MISSED = "moorage.dev/ReclaimMissed"
D1 = frozenset({device("d1")})


class DeviceScene(Scene):
    """No limit is reached: a node's only device is used by robots, beyond their quota."""

    def __init__(
        self, robots: int = 0, mine: int = 1, server: FakeClaimServer | None = None
    ) -> None:
        super().__init__(server)
        self.waiting = []
        put(self.world, a_queue("root", onvif=(-1, -1)))
        put(self.world, a_queue("mine", parent="root", onvif=(mine, -1)))
        put(self.world, a_queue("robots", parent="root", onvif=(robots, -1)))
        self.offer("d1")
        self.use_device("r1", "d1")
        self.wait_for_device("w")

    def use_device(self, name: str, used: str) -> None:
        result = a_result(pool="n", device=used)
        fields = {"results": [result], "pods": [name], "queue": "robots"}
        held = a_claim_object(name, requests=[a_request()], **fields)
        self.server.put(CLAIMS, held)
        self.note_claim(self.server.claim(name))
        self.put_pod(name, "robots", node="n", phase="Running")

    def wait_for_device(self, name: str) -> None:
        self.put_claim(name)
        self.put_pod(name, "mine", status=UNSCHEDULABLE)

    def offer_at(self, node: str, *devices: str) -> None:
        """Another node, with these devices."""
        self.inventory.nodes.put_node(node_view(a_node_object(node)))
        found = a_slice_object(*devices, node=node, metadata={"name": node})
        self.inventory.devices.put_slice(published_slice(found))

    def end(self, name: str) -> None:
        """It is gone, and its device is free."""
        self.remove(name)

    def missed(self, name: str = "w") -> str:
        conditions = self.server.pod(name)["status"].get("conditions", ())
        found = (c["message"] for c in conditions if c["type"] == MISSED)
        return next(found, "")


@in_virtual_time
async def test_a_device_is_freed_and_held_and_the_condition_says_which() -> None:
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()

    assert scene.evicted == ["r1"]
    assert scene.held == ["Pod default/w"]
    assert scene.condition() == ("True", "DeviceReclaimed")
    assert ("DeviceReclaimed", "w") in scene.told
    (hold,) = scene.world.assumptions.holds.of_devices()
    assert (names_of(hold.devices), hold.node) == (D1, "n")


@in_virtual_time
async def test_a_whole_line_is_served_in_one_cycle() -> None:
    count = 20
    scene = DeviceScene(mine=count)
    scene.offer(*(f"d{n}" for n in range(1, count + 1)))
    for number in range(2, count + 1):
        scene.use_device(f"r{number}", f"d{number}")
        scene.wait_for_device(f"w{number}")

    async with scene.running():
        await scene.rounds()

    assert len(scene.evicted) == len(set(scene.evicted)) == count
    assert len(scene.held) == count


@in_virtual_time
async def test_each_minute_no_more_are_evicted_for_a_queue_than_may_be() -> None:
    scene, before = DeviceScene(mine=4), PUT_OFF.labels("mine")._value.get()  # noqa: SLF001
    scene.limit_evictions(2)
    scene.offer("d1", "d2", "d3", "d4")
    for number in (2, 3, 4):
        scene.use_device(f"r{number}", f"d{number}")
        scene.wait_for_device(f"w{number}")

    async with scene.running():
        await scene.rounds()
        assert len(scene.evicted) == 2
        for name in scene.evicted:
            scene.never_ends(name)
        await scene.at(50)
        assert len(scene.evicted) == 2
        assert "2 pods were evicted for its queue" in scene.world.unmet[QueueName("mine")]
        assert PUT_OFF.labels("mine")._value.get() > before  # noqa: SLF001
        await scene.at(70)

    assert len(set(scene.evicted)) == 4


@in_virtual_time
async def test_where_reclaim_is_off_nobody_goes() -> None:
    scene = DeviceScene()
    scene.switch_off()

    async with scene.running():
        await scene.at(100)

    assert (scene.evicted, scene.held) == ([], [])


@in_virtual_time
async def test_a_node_where_the_pod_was_not_bound_is_left_out_for_ten_minutes() -> None:
    """What keeps it from there is not modelled, such as a volume."""
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()
        scene.end("r1")
        await scene.at(130)
        assert (scene.held, scene.condition()) == ([], ("False", "TimeOver"))
        assert '"n" until ' in scene.missed()
        assert ("ReclaimMissed", "w") in scene.told
        scene.use_device("r2", "d1")
        await scene.at(600)
        assert scene.evicted == ["r1"]
        assert "1 node is left out" in scene.world.unmet[QueueName("mine")]
        await scene.at(740)

    assert scene.evicted[:2] == ["r1", "r2"]


@in_virtual_time
async def test_a_free_device_to_which_the_pod_is_not_bound_spares_nobody_for_ever() -> None:
    """Nothing was taken for it there: kube-scheduler had its chance, and knew why not."""
    scene = DeviceScene()
    scene.offer_at("m", "d9")

    async with scene.running():
        await scene.at(50)
        assert (scene.evicted, scene.missed()) == ([], "")
        await scene.at(66)
        assert '"m" until ' in scene.missed()

    assert scene.evicted == ["r1"]


@in_virtual_time
async def test_a_pod_that_may_not_leave_its_gate_misses_no_node() -> None:
    scene = DeviceScene()
    scene.put_pod("w", "mine", spec={"schedulingGates": [{"name": "moorage.dev/quota"}]})
    scene.waiting = [pod_uid("w")]
    scene.offer_at("m", "d9")

    async with scene.running():
        await scene.at(200)

    assert (scene.evicted, scene.missed()) == ([], "")


@in_virtual_time
async def test_whoever_leads_next_leaves_it_out_too() -> None:
    first = DeviceScene()
    async with first.running():
        await first.rounds()
        first.end("r1")
        await first.at(130)
    first.use_device("r2", "d1")

    second = DeviceScene()
    second.end("r1")
    second.use_device("r2", "d1")
    second.note_pod(first.server.pod("w"))
    async with second.running():
        await second.at(now() + 300)

    assert second.evicted == []


@in_virtual_time
async def test_an_evicted_kind_of_pods_borrows_again_after_a_minute() -> None:
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()
        backoffs = scene.world.assumptions.backoffs
        assert len(backoffs) == 1
        backoffs.expire(NOW + timedelta(seconds=61))

    assert len(backoffs) == 1


@pytest.mark.parametrize(
    ("stuck", "held"), [("stranger", ["Pod default/w"]), ("r1", [])], ids=["another", "it"]
)
@in_virtual_time
async def test_a_device_is_held_as_long_as_whoever_has_it_may_still_end(
    stuck: str, held: list[str]
) -> None:
    scene = DeviceScene()
    scene.server.put(PODS, a_pod_object("stranger", node="n", phase="Running"))
    scene.note_pod(scene.server.pod("stranger"))

    async with scene.running():
        await scene.rounds()
        for name in ("r1", "stranger"):
            pod = scene.server.pod(name)
            grace_over = NOW + timedelta(minutes=-10 if name == stuck else 10)
            pod["metadata"]["deletionTimestamp"] = timestamp(grace_over)
            scene.note_pod(pod)
        await scene.at(63)

    assert (scene.evicted, scene.held) == (["r1"], held)


@in_virtual_time
async def test_a_device_that_is_never_given_back_lets_the_next_go_and_the_queue_says_why() -> None:
    scene = DeviceScene()

    async with scene.running():
        await scene.rounds()
        scene.never_ends("r1")
        await scene.at(182)
        assert (scene.evicted, scene.held) == (["r1"], [])
        why = scene.world.unmet[QueueName("mine")]
        assert "1 claims or pods have users that are terminating, and do not end" in why
        scene.offer("d1", "d2")
        scene.use_device("r2", "d2")
        await scene.at(190)

    assert scene.evicted[:2] == ["r1", "r2"]
    assert scene.held == ["Pod default/w"]


@in_virtual_time
async def test_nobody_goes_where_nobody_is_over_the_quota() -> None:
    scene = DeviceScene(robots=1)

    async with scene.running():
        await scene.rounds()

    assert scene.evicted == []


@in_virtual_time
async def test_a_pod_that_was_not_tried_wants_no_device() -> None:
    scene = DeviceScene()
    scene.put_pod("w", "mine", status={"conditions": []})

    async with scene.running():
        await scene.rounds()

    assert scene.evicted == []


@in_virtual_time
async def test_nothing_is_listed_or_read_for_a_decision() -> None:
    scene = DeviceScene()
    before = len(scene.server.asked)

    async with scene.running():
        await scene.rounds()

    assert scene.evicted == ["r1"]
    assert [asked for asked in scene.server.asked[before:] if asked.startswith("GET")] == []


@in_virtual_time
async def test_whoever_leads_next_holds_the_same_device() -> None:
    first = DeviceScene()
    async with first.running():
        await first.rounds()

    second = DeviceScene()
    second.note_pod(first.server.pod("w"))
    second.reclaimer.begin()

    (hold,) = second.world.assumptions.holds.of_devices()
    assert (hold.name, names_of(hold.devices), hold.node) == ("Pod default/w", D1, "n")


@in_virtual_time
async def test_what_an_earlier_version_held_is_of_any_device_of_the_kind() -> None:
    scene = DeviceScene()
    told = {"type": "moorage.dev/Reclaiming", "status": "True", "reason": "DeviceReclaimed"}
    status = {"conditions": [*UNSCHEDULABLE["conditions"], {**told, "message": "As it was."}]}

    scene.put_pod("w", "mine", status=status)
    scene.reclaimer.begin()

    (hold,) = scene.world.assumptions.holds.of_devices()
    assert (hold.devices, hold.is_of_any) == ((), True)


@in_virtual_time
async def test_whoever_leads_next_holds_it_as_long_as_the_evicted_may_take_to_end() -> None:
    first = DeviceScene()
    async with first.running():
        await first.rounds()
    second = DeviceScene()
    second.leaves("r1", timedelta(minutes=5))
    second.note_pod(first.server.pod("w"))

    async with second.running():
        start = now()
        await second.at(start + 61)
        assert second.held == ["Pod default/w"]
        second.end("r1")
        second.reclaimer.changed(PodChanged(pod_uid("r1")))
        await second.at(start + 100)
        assert second.held == ["Pod default/w"]
        await second.at(start + 125)

    assert second.held == []
    assert second.evicted == []
