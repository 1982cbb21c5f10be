"""What a claim needs beside bindings is done once, by whoever may, and told to people."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from binder.cleanup import apiserver_claim_cleanup
from binder.evictions.apiserver_evictions import EVICTED_SECONDS
from kube.backoff import Backoff
from kube.kinds import PODS
from scheduler_plugin.cleanup.stale_claims import GRACE
from scheduler_plugin.objects.api import BindFailed, Outcome
from scheduler_plugin.objects.names import QueueName
from tests.binder.builders import a_bind
from tests.binder.cleanup.cleanup_scenes import Scene
from tests.binder.virtual_time import in_virtual_time
from tests.fakes.apiserver import Fault, Happening
from tests.fakes.claim_server import CLAIM, OWNER_LEFT_AT
from tests.fakes.fence import FakeFence
from tests.left_overs import kept_in
from tests.scheduler_plugin.builders import (
    a_group,
    a_pod,
    a_queue,
    a_result,
    admit,
    claim_uid,
    put,
)

EVICT = {"claimSharing": {"onOwnerExit": "Evict", "ownerExitGracePeriod": "2m"}}
LEFT: dict[str, Any] = {"annotations": {OWNER_LEFT_AT: "2026-11-21T12:00:00Z"}}
IN_USE: dict[str, Any] = {"results": [a_result()]}


def a_left_scene(*foreign: str, fence: FakeFence | None = None) -> Scene:
    """Queue a owns the claim, which only foreign pods use, and wants it back after two minutes."""
    names = foreign or ("b",)
    scene = Scene(a_queue("a", **EVICT), *(a_queue(name) for name in names), fence=fence)
    for number, name in enumerate(names):
        scene.put_pod(name, created=f"2026-11-21T10:00:{number:02}Z")
    scene.put_claim(queue="a", pods=names, **IN_USE, **LEFT)
    return scene


def an_orphaned_scene(**options: Any) -> Scene:
    scene = Scene(a_queue("b"), **options)
    scene.put_pod("b")
    scene.put_claim(pods=["b"], **IN_USE)
    return scene


def left_at(scene: Scene) -> str:
    return str(scene.server.claim()["metadata"]["annotations"].get(OWNER_LEFT_AT, ""))


# Orphans.


@in_virtual_time
async def test_an_orphan_is_attributed_and_people_are_told() -> None:
    scene = an_orphaned_scene()
    async with scene.running():
        await scene.until_idle()

    assert scene.server.owner() == ("b", "uid-of-b")
    assert scene.server.asked == ["PATCH cam"]
    assert scene.told == [("OrphanAttributed", "cam")]


@in_virtual_time
async def test_an_orphan_that_a_binding_uses_is_looked_at_when_that_is_over() -> None:
    scene = an_orphaned_scene()
    scene.busy.add(claim_uid("cam"))
    async with scene.running():
        await scene.until_idle()
        assert scene.server.asked == []

        scene.busy.clear()
        await scene.later(seconds=1)
        await scene.until(lambda: scene.server.owner() == ("b", "uid-of-b"))


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.FAILS, Fault.LOST, Fault.UNANSWERED])
@in_virtual_time
async def test_an_orphan_is_attributed_once_whatever_goes_wrong(fault: Fault) -> None:
    scene = an_orphaned_scene()
    scene.server.will(fault)
    async with scene.running():
        await scene.until_idle()

    assert scene.server.labels == ["b"]
    assert scene.told == [("OrphanAttributed", "cam")]


@in_virtual_time
async def test_whoever_else_attributed_it_first_has_done_it() -> None:
    scene = an_orphaned_scene()
    other = an_orphaned_scene(server=scene.server)
    async with scene.running(), other.running():
        await scene.until_idle()
        await other.until_idle()

    assert scene.server.labels == ["b"]
    assert len(scene.told + other.told) == 1


@in_virtual_time
async def test_an_odd_answer_keeps_no_other_claim_from_its_step() -> None:
    scene = an_orphaned_scene()
    scene.put_claim("other", queue="b", owner_pod="a")

    def misbehave() -> None:
        raise ZeroDivisionError

    scene.server.will(misbehave)
    async with scene.running():
        await scene.until(lambda: scene.server.owner("other") == ("", ""))


# Leaving.


@in_virtual_time
async def test_the_time_of_leaving_is_written_and_told() -> None:
    scene = a_left_scene()
    scene.put_claim(queue="a", pods=["b"], **IN_USE)
    async with scene.running():
        await scene.until_idle()

    assert left_at(scene) == "2026-11-21T12:00:00Z"
    assert scene.server.evicted == []
    (event,) = scene.events
    assert event.note == (
        'ResourceClaim default/cam belongs to queue "a". No pod of that queue uses it any more;'
        ' pods of other queues do (1). Queue "a" has onOwnerExit: Evict: they are evicted from'
        " 2026-11-21T12:02:00Z on, unless a pod of that queue uses the claim before."
    )


@in_virtual_time
async def test_foreign_pods_are_evicted_when_the_alarm_rings() -> None:
    scene = a_left_scene("b", "c")
    async with scene.running():
        await scene.until_idle()
        assert scene.server.asked == []

        await scene.later(minutes=2)
        await scene.until_idle()

    assert scene.server.evicted == ["b", "c"]
    assert scene.told == [
        ("ForeignPodsEvicted", "cam"),
        ("ForeignPodEvicted", "b"),
        ("ForeignPodEvicted", "c"),
    ]


@in_virtual_time
async def test_evicted_pods_are_given_time_to_be_seen_as_such() -> None:
    scene = a_left_scene()
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until_idle()
        await scene.later(seconds=1)
        await scene.until_idle()
        assert scene.server.evicted == ["b"]

        await scene.later(seconds=EVICTED_SECONDS)
        await scene.until(lambda: scene.server.evicted == ["b", "b"])


@in_virtual_time
async def test_a_clock_that_is_set_back_makes_no_rest_longer() -> None:
    scene = a_left_scene()
    await scene.later(minutes=62)
    async with scene.running():
        await scene.until_idle()
        assert scene.server.evicted == ["b"]

        scene.clock_ahead = timedelta(minutes=-60)
        await scene.later(seconds=EVICTED_SECONDS)
        await scene.until(lambda: scene.server.evicted == ["b", "b"])


@in_virtual_time
async def test_the_time_of_leaving_goes_when_an_owners_pod_comes_back() -> None:
    scene = a_left_scene()
    async with scene.running():
        scene.put_pod("a", node="")
        scene.put_claim(queue="a", pods=["b", "a"], **IN_USE, **LEFT)
        await scene.later(minutes=9)
        await scene.until_idle()

    assert left_at(scene) == ""
    assert scene.server.evicted == []


@in_virtual_time
async def test_an_owners_pod_that_comes_while_the_server_is_asked_saves_all() -> None:
    scene = a_left_scene("b", "c")
    back = a_pod("a", queue="a", claims=["cam"])

    def come_back() -> None:
        put(scene.world, back)
        admit(scene.world, back, now=scene.clock())

    scene.server.will(None, come_back)
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until_idle()

    assert scene.server.asked[:2] == ["POST eviction (dry)", "POST eviction (dry)"]
    assert scene.server.evicted == []


@in_virtual_time
async def test_a_pod_that_is_gone_at_once_does_not_save_the_others() -> None:
    """It is among the consumers until a controller takes it out."""
    scene = a_left_scene("b", "c")
    scene.server.will(*[None] * 5, lambda: scene.remove_pod("b"))
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until(lambda: scene.server.evicted == ["b", "c"])


@in_virtual_time
async def test_a_budget_that_changes_in_the_middle_is_told_as_it_is() -> None:
    scene = a_left_scene("b", "c")
    scene.server.will(*[None] * 6, lambda: scene.server.protected.add("c"))
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until(lambda: len(scene.events) >= 3)

    assert scene.server.evicted == ["b"]
    assert scene.told[2] == ("EvictionHeldBack", "cam")
    assert "1 of them were evicted: Pod default/c: Cannot evict" in scene.events[2].note


@in_virtual_time
async def test_one_pod_that_may_not_go_keeps_the_set_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apiserver_claim_cleanup, "HELD_BACK", Backoff(300.0, 300.0))
    monkeypatch.setattr(random, "random", lambda: 1.0)
    scene = a_left_scene("b", "c")
    scene.server.protected = {"c"}
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until_idle()
        scene.controller.changed([claim_uid("cam")])
        await scene.later(minutes=2)
        assert scene.server.evicted == []
        assert scene.told == [("EvictionHeldBack", "cam")]
        assert scene.events[0].note.endswith(
            "None of them was evicted: Pod default/c: Cannot evict pod. The budget needs 1"
            " healthy pod."
        )

        scene.server.protected.clear()
        await scene.later(minutes=2)
        assert scene.server.evicted == []
        await scene.until(lambda: scene.server.evicted == ["b", "c"])


@pytest.mark.parametrize(("allowed", "evicted"), [(0, []), (1, []), (2, ["b", "c"])])
@in_virtual_time
async def test_a_budget_has_to_let_all_of_its_pods_go(allowed: int, evicted: list[str]) -> None:
    scene = a_left_scene("b", "c")
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("b", "c"):
        scene.put_pod(name, phase="Running", labels={"app": "x"}, status=ready)
    scene.server.budgets = [
        {
            "metadata": {"name": "some"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}},
            "status": {"disruptionsAllowed": allowed},
        }
    ]
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until(lambda: bool(scene.events))
        await scene.until(lambda: scene.server.evicted == evicted)

    assert scene.told[0] == ("ForeignPodsEvicted" if evicted else "EvictionHeldBack", "cam")


@in_virtual_time
async def test_a_pod_that_is_gone_or_another_by_now_is_passed_over() -> None:
    scene = a_left_scene("b", "c", "d")
    scene.server.remove(PODS.at("b", "default"))
    scene.server.change(PODS.at("c", "default"), lambda pod: pod["metadata"].update(uid="another"))
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until(lambda: scene.server.evicted == ["d"])

    assert scene.told[:2] == [("ForeignPodsEvicted", "cam"), ("ForeignPodEvicted", "d")]


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.FAILS, Fault.LOST])
@pytest.mark.parametrize("moment", [0, 1])
@in_virtual_time
async def test_a_server_that_cannot_answer_is_asked_again(moment: int, fault: Fault) -> None:
    scene = a_left_scene()
    scene.server.will(*[None] * moment, fault)
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until(lambda: scene.server.evicted == ["b"])

    assert scene.told == [("ForeignPodsEvicted", "cam"), ("ForeignPodEvicted", "b")]


@in_virtual_time
async def test_nothing_is_evicted_behind_a_fence_that_closes_in_the_middle() -> None:
    fence = FakeFence(open_for=2)
    scene = a_left_scene("b", fence=fence)
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until(lambda: scene.server.asked == ["POST eviction (dry)"])
        await scene.until_idle()
        assert scene.server.evicted == []

        fence.open_for = None
        await scene.until(lambda: scene.server.evicted == ["b"])


@in_virtual_time
async def test_a_claim_whose_pods_take_long_keeps_no_other_waiting() -> None:
    scene = a_left_scene()
    names = [f"other-{number}" for number in range(2 * apiserver_claim_cleanup.WORKERS)]
    forever = asyncio.Event()

    async def hang(_: str) -> Happening:
        if not scene.server.asked:
            scene.server.asked.append("hangs")
            await forever.wait()
        return None

    scene.server.next_happening = hang
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until(lambda: scene.server.asked == ["hangs"])
        for name in names:
            scene.add(name)
        scene.controller.changed([claim_uid(name) for name in names])
        await scene.until(lambda: all(scene.server.owner(name) == ("", "") for name in names))
        assert scene.server.evicted == []

        forever.set()
        await scene.until(lambda: scene.server.evicted == ["b"])


# Left-overs.


@in_virtual_time
async def test_a_left_over_allocation_is_cleared_after_the_grace() -> None:
    scene = Scene(a_queue("a"))
    scene.put_claim(**IN_USE)
    async with scene.running():
        await scene.until_idle()
        assert scene.server.asked == []

        await scene.later(seconds=GRACE.total_seconds())
        await scene.until(lambda: scene.server.claim()["status"] == {})

    assert scene.server.asked == ["GET cam", "PATCH status"]
    assert scene.told == [("LeftOverCleared", "cam")]


@in_virtual_time
async def test_pods_that_ended_are_taken_out_and_others_stay() -> None:
    scene = Scene(a_queue("a"))
    scene.put_pod("a")
    scene.put_pod("ended", queue="a", phase="Failed")
    scene.put_claim(queue="a", pods=["ended", "a"], **IN_USE)
    async with scene.running():
        await scene.until_idle()
        await scene.later(seconds=GRACE.total_seconds())
        await scene.until_idle()

    status = scene.server.claim()["status"]
    assert [consumer["name"] for consumer in status["reservedFor"]] == ["a"]
    assert "allocation" in status


@in_virtual_time
async def test_a_group_without_users_is_taken_out_and_people_are_told() -> None:
    scene = Scene(a_queue("a"), a_group())
    scene.put_pod("a", group="train")
    scene.put_claim(queue="a", groups=["train"], **IN_USE)
    async with scene.running():
        await scene.until_idle()
        await scene.later(seconds=2 * GRACE.total_seconds())
        assert scene.server.asked == []

        scene.remove_pod("a")
        await scene.until_idle()
        await scene.later(seconds=GRACE.total_seconds())
        await scene.until(lambda: scene.server.claim()["status"] == {})

    (event,) = scene.events
    assert event.note == (
        "No pod of PodGroup default/train uses ResourceClaim default/cam any more:"
        " its reservation and its allocation were cleared."
    )


@in_virtual_time
async def test_a_group_without_users_leaves_the_claim_to_the_pods_beside_it() -> None:
    scene = Scene(a_queue("a"), a_group())
    scene.put_pod("a")
    scene.put_claim(queue="a", pods=["a"], groups=["train"], **IN_USE)
    async with scene.running():
        await scene.until_idle()
        await scene.later(seconds=GRACE.total_seconds())
        await scene.until_idle()

    status = scene.server.claim()["status"]
    assert [consumer["name"] for consumer in status["reservedFor"]] == ["a"]
    assert "allocation" in status
    assert scene.told == [("LeftOverCleared", "cam")]


def a_left_over_group() -> Scene:
    """Pod a waits. For a claim that is reserved for its group, kube-scheduler writes nothing."""
    scene = Scene(a_queue("a"), a_group())
    scene.put_pod("a", group="train", node="")
    scene.put_claim(queue="a", owner_pod="a", groups=["train"], **IN_USE)
    return scene


@in_virtual_time
async def test_a_group_of_which_a_pod_was_admitted_meanwhile_is_left_alone() -> None:
    scene = a_left_over_group()
    pod = scene.world.facts.pod_named("default", "a")
    assert pod is not None
    async with scene.running():
        await scene.until_idle()
        scene.server.will(lambda: admit(scene.world, pod, now=scene.clock()))
        await scene.later(seconds=GRACE.total_seconds())

    assert scene.server.asked == ["GET cam"]


@pytest.mark.parametrize("fault", [None, Fault.UNANSWERED, Fault.LOST])
@in_virtual_time
async def test_no_pod_is_bound_while_its_claim_may_be_cleared(fault: Fault | None) -> None:
    scene = a_left_over_group()
    scene.server.bound.clear()
    bind = a_bind(scene.server, "a")
    outcomes: list[Outcome] = []

    async def bind_meanwhile(path: str) -> Happening:
        if path.endswith("/status"):
            scene.server.next_happening = bind_before_the_retry
            outcomes.append(await scene.binder.bind(bind))
            return fault
        return None

    async def bind_before_the_retry(_: str) -> Happening:
        scene.server.next_happening = nothing_happens
        if fault is not None:
            outcomes.append(await scene.binder.bind(bind))
        return None

    async def nothing_happens(_: str) -> Happening:
        return None

    scene.server.next_happening = bind_meanwhile
    async with scene.running():
        await scene.until_idle()
        await scene.later(seconds=GRACE.total_seconds())
        await scene.until(lambda: scene.server.claim()["status"] == {})

    why = "ResourceClaim default/cam is being released, since no pod used it."
    assert outcomes == [BindFailed(why, is_certain=True)] * (1 if fault is None else 2)
    assert scene.server.bound == []


@in_virtual_time
async def test_an_owner_goes_with_the_allocation_that_was_left_over() -> None:
    scene = Scene(a_queue("a"))
    scene.put_claim(queue="a", owner_pod="a", **IN_USE)
    async with scene.running():
        await scene.until_idle()
        await scene.later(seconds=GRACE.total_seconds())
        await scene.until(lambda: scene.server.claim()["status"] == {})
        await scene.until(lambda: scene.server.owner() == ("", ""))


@in_virtual_time
async def test_a_claim_that_was_reserved_meanwhile_is_not_cleared() -> None:
    scene = Scene(a_queue("a"))
    scene.put_claim(**IN_USE)
    entry = {"resource": "pods", "name": "late", "uid": "uid-of-late"}
    reserve = lambda claim: claim["status"].update(reservedFor=[entry])  # noqa: E731
    scene.server.will(lambda: scene.server.change(CLAIM, reserve))
    async with scene.running():
        await scene.until_idle()
        await scene.later(seconds=GRACE.total_seconds())
        await scene.until_idle()

    assert scene.server.claim()["status"]["reservedFor"] == [entry]
    assert scene.server.asked == ["GET cam"]


@pytest.mark.parametrize("moment", [0, 1])
@in_virtual_time
async def test_clearing_is_tried_again_where_an_answer_is_lost(moment: int) -> None:
    scene = Scene(a_queue("a"))
    scene.put_claim(**IN_USE)
    scene.server.will(*[None] * moment, Fault.UNANSWERED)
    async with scene.running():
        await scene.until_idle()
        await scene.later(seconds=GRACE.total_seconds())
        await scene.until(lambda: scene.server.claim()["status"] == {})


# Lost queues.


@in_virtual_time
async def test_a_claim_of_a_lost_queue_is_told_once_until_it_is_lost_again() -> None:
    scene = Scene(a_queue("b"))
    scene.put_claim(queue="gone")
    async with scene.running():
        await scene.until_idle()
        await scene.later(minutes=1)
        await scene.until_idle()
        assert scene.told == [("QueueLost", "cam")]

        put(scene.world, a_queue("gone"))
        scene.controller.queues_changed()
        await scene.until_idle()
        scene.world.delete_queue(QueueName("gone"))
        scene.controller.queues_changed()
        await scene.until(lambda: len(scene.told) == 2)


@in_virtual_time
async def test_only_the_leader_tells_of_a_lost_queue() -> None:
    fence = FakeFence(open_for=0)
    scene = Scene(fence=fence)
    scene.put_claim(queue="gone")
    async with scene.running():
        await scene.until_idle()
        assert scene.told == []

        fence.open_for = None
        await scene.later(minutes=1)
        await scene.until(lambda: scene.told == [("QueueLost", "cam")])


@in_virtual_time
async def test_nothing_is_kept_of_a_claim_that_is_deleted() -> None:
    scene = a_left_scene()
    scene.server.protected = {"b"}
    scene.put_claim("other", queue="gone")
    await scene.later(minutes=2)
    async with scene.running():
        await scene.until(lambda: len(scene.told) >= 2)
        for name in ("cam", "other"):
            scene.world.delete_claim(claim_uid(name))
            scene.controller.changed([claim_uid(name)])
        await scene.later(minutes=3)

    left = kept_in(scene.controller, scene.world, *vars(scene.world).values())
    # The next resync is all that is left, and moments that are dropped in time.
    assert not [path for path in left if not path.endswith("._heap") and "._resync." not in path]
