"""When the owner's last pod left a claim: what is noted, who is evicted, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.owner_exits import EvictForeign, OwnerExitTime, RequeueAt, owner_exit
from scheduler_plugin.objects.names import OWNER_LEFT_AT_ANNOTATION, QueueName
from tests.scheduler_plugin.builders import (
    NOW,
    a_group,
    a_pod,
    a_queue,
    a_world,
    admit,
    an_allocated_claim,
    claim_uid,
    pod_uid,
    put,
)

CLAIM = claim_uid("cam")
EVICT = {"claimSharing": {"onOwnerExit": "Evict", "ownerExitGracePeriod": "2m"}}
LEFT = {"annotations": {OWNER_LEFT_AT_ANNOTATION: "2026-11-21T12:00:00Z"}}
ASKED = {"annotations": {**LEFT["annotations"], "moorage.dev/evict-foreign": "true"}}
GRACE = timedelta(minutes=2)


def foreign(name: str = "b", **overrides: Any) -> Any:
    return a_pod(name, **{"queue": "b", "claims": ["cam"], "node": "node-a", **overrides})


def a_left_world(*objects: object, owner: Any = None, **claim: Any) -> World:
    """Queue a owns the claim that only a pod of queue b uses."""
    consumers = claim.pop("consumers", ["b"])
    cam = an_allocated_claim("cam", *consumers, queue="a", **claim)
    return a_world(owner or a_queue("a", **EVICT), a_queue("b"), foreign(), cam, *objects)


def left_at(value: str | None) -> OwnerExitTime:
    return OwnerExitTime(
        namespace="default", name="cam", uid=CLAIM, resource_version="1", value=value
    )


def evicted(world: World) -> list[str]:
    found = owner_exit(CLAIM, world, NOW + GRACE)
    return [pod.name for pod in found.pods] if isinstance(found, EvictForeign) else []


def test_the_time_of_leaving_is_noted() -> None:
    assert owner_exit(CLAIM, a_left_world(), NOW) == left_at("2026-11-21T12:00:00Z")


def test_foreign_pods_stay_until_the_grace_is_over() -> None:
    world = a_left_world(**LEFT)

    almost = NOW + GRACE - timedelta(seconds=1)
    assert owner_exit(CLAIM, world, almost) == RequeueAt(NOW + GRACE)
    found = owner_exit(CLAIM, world, NOW + GRACE)
    assert isinstance(found, EvictForeign)
    assert found.owner == QueueName("a")
    assert [(p.namespace, p.name, p.uid) for p in found.pods] == [("default", "b", pod_uid("b"))]
    assert found.why == (
        'ResourceClaim default/cam belongs to queue "a", whose last pod stopped using it at'
        ' 2026-11-21T12:00:00Z. Queue "a" has onOwnerExit: Evict: pods of other queues are to be'
        " evicted."
    )


def test_foreign_pods_are_kept_where_nothing_asks_for_their_eviction() -> None:
    world = a_left_world(owner=a_queue("a"), **LEFT)

    assert owner_exit(CLAIM, world, NOW + timedelta(days=9)) is None


def test_the_policy_and_its_grace_are_inherited() -> None:
    owner = a_queue("a", parent="above")
    world = a_left_world(a_queue("above", **EVICT), owner=owner, **LEFT)

    assert evicted(world) == ["b"]


def test_the_annotation_asks_for_eviction_where_the_owner_lets_it() -> None:
    kept = {"ownerExitGracePeriod": "2m"}
    asked = a_left_world(owner=a_queue("a", claimSharing=kept), **ASKED)
    denied = a_queue("a", claimSharing={**kept, "evictForeign": "Deny"})

    assert evicted(asked) == ["b"]
    assert evicted(a_left_world(owner=denied, **ASKED)) == []


def test_all_foreign_pods_go_as_one_set_the_oldest_first() -> None:
    pods = [
        foreign("c", queue="c", created="2026-11-21T10:00:00Z"),
        foreign("d", queue=""),
        foreign("gone", phase="Succeeded"),
        foreign("waits", node=""),
        replace(foreign("leaving"), deleting=True),
    ]
    consumers = ["b", "c", "d", "gone", "waits", "leaving"]
    world = a_left_world(*pods, consumers=consumers, **LEFT)

    assert evicted(world) == ["c", "b", "d"]


@pytest.mark.parametrize(
    ("goes_whole", "gone"), [(True, ["d", "e", "b", "c"]), (False, ["b", "c"])]
)
def test_a_group_that_is_disrupted_together_goes_whole(goes_whole: bool, gone: list[str]) -> None:
    """Those that use the claim go last: while they are there, what was begun is continued."""
    b, c = foreign(group="train"), foreign("c", created="2026-11-21T11:00:00Z")
    elsewhere = [foreign(name, claims=["own"], group="train") for name in ("d", "e")]
    others = [
        foreign("ended", claims=["own"], group="train", phase="Succeeded"),
        foreign("waits", claims=["own"], group="train", node=""),
        foreign("of-another", claims=["own"], group="another"),
        foreign("owners", claims=["own"], group="train", queue="a"),
        foreign("stays", claims=["own"], group="train", non_preemptible=True),
    ]
    group = a_group(goes_whole=goes_whole)
    world = a_left_world(b, c, *elsewhere, *others, group, consumers=["b", "c"], **LEFT)

    assert evicted(world) == gone


def test_an_owners_pod_that_comes_back_ends_the_time_of_leaving() -> None:
    back = a_pod("a", queue="a", claims=["cam"])
    world = a_left_world(back, consumers=["b", "a"], **LEFT)

    assert owner_exit(CLAIM, world, NOW + GRACE) == left_at(None)


def test_an_owners_pod_that_was_admitted_counts() -> None:
    back = a_pod("a", queue="a", claims=["cam"])
    world = a_left_world(back, **LEFT)
    admit(world, back)

    assert evicted(world) == []
    assert owner_exit(CLAIM, world, NOW) == left_at(None)


def test_an_owners_pod_that_waits_counts_while_the_claim_is_reserved_for_its_group() -> None:
    waits = a_pod("waits", queue="a", claims=["cam"], group="train")
    world = a_left_world(waits, a_group(), groups=["train"])

    assert owner_exit(CLAIM, world, NOW) is None
    world.delete_pod(waits.uid)
    assert isinstance(owner_exit(CLAIM, world, NOW), OwnerExitTime)


def test_an_owners_pod_on_its_way_out_still_counts() -> None:
    going = replace(a_pod("a", queue="a", claims=["cam"], node="node-a"), deleting=True)
    world = a_left_world(going, consumers=["a", "b"], **LEFT)

    assert evicted(world) == []


def test_an_owners_pod_that_ended_has_left() -> None:
    ended = a_pod("a", queue="a", claims=["cam"], node="node-a", phase="Succeeded")
    world = a_left_world(ended, consumers=["a", "b"], **LEFT)

    assert evicted(world) == ["b"]


def test_nothing_is_decided_while_a_consumer_is_not_known() -> None:
    world = a_left_world(consumers=["b", "unknown"], **LEFT)

    assert owner_exit(CLAIM, world, NOW + GRACE) is None
    put(world, foreign("unknown"))
    assert evicted(world) == ["b", "unknown"]


@pytest.mark.parametrize("consumers", [[], ["ended"]])
def test_the_time_of_leaving_goes_with_the_last_foreign_pod(consumers: list[str]) -> None:
    ended = foreign("ended", phase="Failed")
    world = a_left_world(ended, consumers=consumers, **LEFT)

    assert owner_exit(CLAIM, world, NOW + GRACE) == left_at(None)


def test_the_grace_begins_no_earlier_than_the_foreign_pods_themselves() -> None:
    """A time that an earlier allocation left on the claim costs nobody his grace."""
    new = foreign("new", created="2026-11-21T12:01:00Z")
    world = a_left_world(new, consumers=["new"], **LEFT)

    assert owner_exit(CLAIM, world, NOW + GRACE) == RequeueAt(NOW + GRACE + timedelta(minutes=1))


def test_a_pod_that_waited_for_long_has_its_grace_from_its_binding_on() -> None:
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T12:01:00Z"}
    new = foreign("new", created="2026-11-21T10:00:00Z", status={"conditions": [bound]})
    world = a_left_world(new, consumers=["new"], **LEFT)

    assert owner_exit(CLAIM, world, NOW + GRACE) == RequeueAt(NOW + GRACE + timedelta(minutes=1))


@pytest.mark.parametrize("value", ["yesterday", "2026-11-21T12:00:00", "0"])
def test_a_time_that_cannot_be_read_is_written_anew(value: str) -> None:
    world = a_left_world(annotations={OWNER_LEFT_AT_ANNOTATION: value})

    assert owner_exit(CLAIM, world, NOW) == left_at("2026-11-21T12:00:00Z")


def test_a_time_that_a_clock_noted_that_was_ahead_is_written_anew() -> None:
    late = NOW + timedelta(minutes=1)

    assert owner_exit(CLAIM, a_left_world(**LEFT), NOW - timedelta(minutes=1)) == RequeueAt(
        NOW + GRACE
    )
    world = a_left_world(annotations={OWNER_LEFT_AT_ANNOTATION: f"{late:%Y-%m-%dT%H:%M:01Z}"})
    assert owner_exit(CLAIM, world, NOW) == left_at("2026-11-21T12:00:00Z")


def test_a_claim_in_order_needs_nothing() -> None:
    owner = a_pod("a", queue="a", claims=["cam"], node="node-a")

    assert owner_exit(CLAIM, a_left_world(owner, consumers=["a", "b"]), NOW) is None
    assert owner_exit(claim_uid("unknown"), a_world(), NOW) is None
