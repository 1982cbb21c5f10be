"""Owners that ended are removed: soon, by whoever may write, and nothing else with them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from binder.cleanup import apiserver_claim_cleanup
from kube.kinds import CLAIMS
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.names import CHARGED_ANNOTATION, ClaimUid
from tests.binder.cleanup.cleanup_scenes import Scene
from tests.binder.virtual_time import in_virtual_time
from tests.fakes.apiserver import Fault
from tests.fakes.claim_server import CLAIM, OWNER_LEFT_AT
from tests.fakes.fence import FakeFence
from tests.scheduler_plugin.builders import (
    a_claim_object,
    a_pod,
    a_queue,
    a_request,
    a_result,
    admit,
    claim_uid,
)

GPU = "gpu.example.com"
NOBODY = ("", "")
WRITTEN = ("a", "uid-of-a")


@in_virtual_time
async def test_an_owner_that_ended_before_the_start_is_removed() -> None:
    scene = Scene()
    scene.add()

    async with scene.running():
        await scene.until(lambda: scene.server.owner() == NOBODY)

    assert OWNER_LEFT_AT not in scene.server.claim()["metadata"]["annotations"]


@in_virtual_time
async def test_an_owner_that_ends_is_removed_when_that_is_heard_of() -> None:
    scene = Scene()
    async with scene.running():
        await asyncio.sleep(0)
        scene.add()
        scene.controller.changed([claim_uid("cam")])

        await scene.until(lambda: scene.server.owner() == NOBODY)

    assert scene.server.asked == ["PATCH cam"]


@in_virtual_time
async def test_an_owner_that_was_not_heard_of_is_removed_with_the_next_look() -> None:
    scene = Scene()
    async with scene.running():
        await asyncio.sleep(0)
        scene.add()

        await scene.until(lambda: scene.server.owner() == NOBODY)


@in_virtual_time
async def test_many_owners_are_removed_a_few_at_a_time() -> None:
    scene = Scene()
    names = [f"cam-{number}" for number in range(60)]
    for name in names:
        scene.add(name)
    under_way: list[int] = []
    now = 0

    async def counted(_: str) -> None:
        nonlocal now
        now += 1
        under_way.append(now)
        await asyncio.sleep(0)
        now -= 1

    scene.server.next_happening = counted
    async with scene.running():
        await scene.until(lambda: all(scene.server.owner(name) == NOBODY for name in names))

    assert max(under_way) == apiserver_claim_cleanup.WORKERS


@in_virtual_time
async def test_a_label_that_a_user_set_is_never_removed() -> None:
    scene = Scene()
    scene.add("users", owner_pod="")
    scene.add("binders")
    async with scene.running():
        await scene.until(lambda: scene.server.owner("binders") == NOBODY)
        await scene.until_idle()

    assert scene.server.owner("users") == ("a", "")
    assert scene.server.asked == ["PATCH binders"]


@in_virtual_time
async def test_a_claim_whose_pod_is_being_bound_is_left_alone() -> None:
    scene = Scene()
    scene.add("bound")
    scene.add("other")
    scene.busy.add(claim_uid("bound"))
    async with scene.running():
        await scene.until(lambda: scene.server.owner("other") == NOBODY)
        await scene.until_idle()
        assert scene.server.owner("bound") == WRITTEN

        scene.busy.clear()
        scene.controller.changed([claim_uid("bound")])
        await scene.until(lambda: scene.server.owner("bound") == NOBODY)


@in_virtual_time
async def test_an_owner_that_a_decision_kept_ends_when_that_comes_to_nothing() -> None:
    """Its pod has reserved nothing yet: no claim and no consumer of one changes."""
    pod = a_pod("other", queue="a", claims=["cam"])
    scene = Scene(a_queue("a"), pod)
    scene.add()
    admit(scene.world, pod)
    heard: list[ClaimUid] = []
    scene.world.assumptions.subscribe(heard.extend)
    async with scene.running():
        await scene.until_idle()
        assert scene.server.owner() == WRITTEN

        scene.world.delete_pod(pod.uid)

        await scene.until(lambda: scene.server.owner() == NOBODY)

    assert heard == [claim_uid("cam")]


@in_virtual_time
async def test_a_removal_whose_answer_is_lost_does_no_harm_twice() -> None:
    scene = Scene()
    scene.add()
    scene.server.will(Fault.UNANSWERED)
    async with scene.running():
        await scene.until_idle()
        await scene.until(lambda: len(scene.server.asked) == 2)
        await scene.until_idle()

    assert scene.server.labels == [""]


@in_virtual_time
async def test_nothing_is_removed_behind_a_closed_fence() -> None:
    fence = FakeFence(open_for=0)
    scene = Scene(fence=fence)
    scene.add()
    async with scene.running():
        await scene.until(lambda: len(fence.asked) > 3)
        assert scene.server.asked == []

        fence.open_for = None
        await scene.until(lambda: scene.server.owner() == NOBODY)


@in_virtual_time
async def test_what_somebody_wrote_first_stays_and_is_waited_for() -> None:
    scene = Scene()
    scene.add()
    again = a_claim_object("cam", queue="b", owner_pod="b")
    scene.server.will(lambda: scene.server.put(CLAIMS, again))
    async with scene.running():
        await scene.until(lambda: len(scene.server.asked) == 1)
        await scene.until_idle()
        assert scene.server.owner() == ("b", "uid-of-b")

        scene.hear(scene.server.claim())
        scene.controller.changed([claim_uid("cam")])
        await scene.until(lambda: scene.server.owner() == NOBODY)


@pytest.mark.parametrize("uid", ["", "another"])
@in_virtual_time
async def test_a_claim_that_is_gone_or_made_anew_is_not_written(uid: str) -> None:
    scene = Scene()
    scene.add()
    scene.server.remove(CLAIM)
    if uid:
        again = a_claim_object("cam", uid=uid, queue="a", owner_pod="a")
        scene.server.put(CLAIMS, again)
    async with scene.running():
        await scene.until(lambda: len(scene.server.asked) == 1)
        await scene.until_idle()

    assert scene.server.labels == []


@in_virtual_time
async def test_a_removal_that_is_forbidden_keeps_no_other_from_its_turn() -> None:
    scene = Scene()
    for number in range(apiserver_claim_cleanup.WORKERS):
        scene.add(f"odd-{number}")
        # The policy of the server sees a label of a user's where the world saw the binder's.
        del scene.server.claim(f"odd-{number}")["metadata"]["annotations"]["moorage.dev/owner-pod"]
    scene.add()
    async with scene.running():
        await scene.until(lambda: scene.server.owner() == NOBODY)

    assert {scene.server.owner(f"odd-{n}")[0] for n in range(apiserver_claim_cleanup.WORKERS)} == {
        "a"
    }


@pytest.mark.parametrize("fault", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER])
@in_virtual_time
async def test_whoever_starts_after_a_kill_removes_what_is_left(fault: Fault) -> None:
    scene = Scene()
    scene.add()
    scene.server.will(fault)
    killed = asyncio.create_task(scene.controller.run())
    await asyncio.wait([killed])
    assert killed.exception()

    later = Scene(server=scene.server)
    later.hear(scene.server.claim())
    async with later.running():
        await later.until(lambda: scene.server.owner() == NOBODY)

    assert scene.server.labels == [""]


@in_virtual_time
async def test_what_devices_cost_is_noted_and_goes_with_the_owner() -> None:
    entry = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}
    scene = Scene(a_queue("a", resources=[entry]))
    device = {"name": "g0", "capacity": {"memory": {"value": "80Gi"}}}
    spec = {"driver": GPU, "pool": {"name": "n"}, "nodeName": "n", "devices": [device]}
    scene.world.put_slice(slice_view({"metadata": {"name": "s"}, "spec": spec}))
    results = [a_result(driver=GPU, pool="n", device="g0")]
    fields: dict[str, Any] = {"queue": "a", "owner_pod": "a", "requests": [a_request("gpu")]}
    scene.put_claim(**fields, results=results, pods=["a"])
    scene.put_pod("a")

    async with scene.running():
        await scene.until(lambda: CHARGED_ANNOTATION in notes(scene))
        note = json.loads(notes(scene)[CHARGED_ANNOTATION])
        assert note == {f"{GPU}/n/g0": {"memory": "80Gi"}}

        scene.put_claim(**fields, annotations=notes(scene))
        scene.remove_pod("a")
        await scene.until(lambda: scene.server.owner() == NOBODY)

    assert CHARGED_ANNOTATION not in notes(scene)


def notes(scene: Scene) -> dict[str, str]:
    found: dict[str, str] = scene.server.claim()["metadata"]["annotations"]
    return found
