"""Where pods are not bound although what they want is free: all such nodes at one time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from kube.kinds import CLAIMS
from scheduler_plugin.objects.held_texts import read_missed
from scheduler_plugin.objects.names import NO_QUEUE, POD_GROUP_ANNOTATION, QueueName
from scheduler_plugin.objects.pods import PodGroupView
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from tests.binder.reclaiming.test_reclaiming import now
from tests.binder.reclaiming.test_reclaiming_devices import DeviceScene
from tests.binder.virtual_time import in_virtual_time
from tests.scheduler_plugin.builders import a_claim_object, a_request, a_result, pod_uid
from tests.scheduler_plugin.reclaiming.devices_builders import UNSCHEDULABLE

VOLUME = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def use_many(scene: DeviceScene, nodes: int) -> None:
    """Nodes with a device each, which robots use beyond their quota."""
    for number in range(nodes):
        name, node = f"q{number}", f"m{number}"
        scene.offer_at(node, "d1")
        fields = {"results": [a_result(pool=node, device="d1")], "pods": [name]}
        claim = a_claim_object(name, requests=[a_request()], queue="robots", **fields)
        scene.server.put(CLAIMS, claim)
        scene.note_claim(scene.server.claim(name))
        scene.put_pod(name, "robots", node=node, phase="Running")


async def let_leave(scene: DeviceScene, until: float) -> None:
    """Whoever is evicted is seen to leave, and takes half a minute."""
    seen: set[str] = set()
    while now() < until:
        await asyncio.sleep(0.05)
        for name in set(scene.evicted) - seen:
            seen.add(name)
            scene.leaves(name, timedelta(seconds=now() + 30))


@in_virtual_time
async def test_twelve_free_nodes_that_do_not_serve_a_pod_are_left_out_after_one_minute() -> None:
    scene = DeviceScene()
    for number in range(12):
        scene.offer_at(f"free{number}", "d1")
    scene.put_pod("w", "mine", status=UNSCHEDULABLE, spec=VOLUME)

    async with scene.running():
        await scene.at(55)
        assert scene.evicted == []
        await let_leave(scene, 75)

    assert scene.evicted == ["r1"]
    assert len(dict(read_missed(scene.missed()))) == 12
    assert [reason for reason, _ in scene.told].count("ReclaimMissed") == 1


@pytest.mark.parametrize("spec", [{}, VOLUME], ids=["plain", "volume"])
@in_virtual_time
async def test_for_one_pod_one_goes_however_long_that_takes(spec: dict[str, object]) -> None:
    scene = DeviceScene()
    use_many(scene, 7)
    scene.put_pod("w", "mine", status=UNSCHEDULABLE, spec=spec)

    async with scene.running():
        await let_leave(scene, now() + 20)

    assert len(scene.evicted) == 1


@pytest.mark.parametrize("count", [2, 5])
@in_virtual_time
async def test_for_a_gang_that_was_tried_as_many_go_as_it_has_pods(count: int) -> None:
    scene = DeviceScene(mine=count)
    use_many(scene, 29)
    scene.world.put_group(PodGroupView("default", "train", NO_QUEUE, count))
    annotations = {POD_GROUP_ANNOTATION: "train"}
    for name in ("w", *(f"w{number}" for number in range(2, count + 1))):
        scene.put_claim(name)
        scene.put_pod(name, "mine", status=UNSCHEDULABLE, annotations=annotations)

    async with scene.running():
        await let_leave(scene, now() + 25)

    assert len(scene.evicted) == count
    assert len(scene.held) == count


@in_virtual_time
async def test_who_is_served_within_the_cap_is_not_said_to_wait_for_it() -> None:
    scene = DeviceScene(mine=2)
    scene.limit_evictions(2)
    scene.offer("d1", "d2", "d3")
    for number in (2, 3):
        scene.use_device(f"r{number}", f"d{number}")
        scene.wait_for_device(f"w{number}")

    async with scene.running():
        await scene.rounds()
        assert len(scene.evicted) == 2
        for name in scene.evicted:
            scene.never_ends(name)
        await scene.at(10)

    assert QueueName("mine") not in scene.world.unmet


@in_virtual_time
async def test_what_is_free_goes_first_to_who_is_below_its_quota_and_nothing_is_written() -> None:
    scene = DeviceScene(robots=0)
    scene.offer("d1", "d2")
    scene.wait_for_device("borrower")
    scene.put_pod("borrower", "robots", status=UNSCHEDULABLE)

    async with scene.running():
        await scene.rounds()
        assert scene.held == ["Pod default/w"]
        assert (scene.evicted, scene.condition()) == ([], ("", ""))
        borrower = scene.world.facts.pod(pod_uid("borrower"))
        assert borrower is not None
        assert set(HeldDevices(scene.world, scene.inventory).kept_off(borrower)) == {"n"}
        scene.put_pod("w", "mine", node="n", phase="Running")
        assert scene.held == []


@in_virtual_time
async def test_what_is_free_and_not_taken_in_a_minute_is_held_no_longer() -> None:
    scene = DeviceScene()
    scene.offer("d1", "d2")

    async with scene.running():
        await let_leave(scene, 50)
        assert (scene.held, scene.evicted) == (["Pod default/w"], [])
        await let_leave(scene, 75)

    assert '"n" until' in scene.missed()
    assert (scene.held, scene.evicted) == ([], [])


@in_virtual_time
async def test_nothing_free_is_held_for_who_is_beyond_its_quota() -> None:
    scene = DeviceScene(mine=0)
    scene.offer("d1", "d2")

    async with scene.running():
        await scene.rounds()

    assert scene.held == []
