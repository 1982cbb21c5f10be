"""Stale gangs: a PodGroup lost pods, and the pods that are left hold devices in vain.

    too few pods         the time is written on the pods that are left, so that no restart
                         extends the grace period
    ... and enough again the condition ends, and nothing else happens
    ... for too long     the pods that are left are evicted as one set

Nothing is done while a group with too few pods does its work all the same (a pod succeeded), or
while one of the pods may not be evicted: it is not preemptible, or belongs to another scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from kube.shapes.times import read_time, timestamp
from scheduler_plugin.accounting.world import World
from scheduler_plugin.keeping.leaving import RequeueAt
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodGroupView, PodView

GroupKey: TypeAlias = tuple[str, str]
"""Namespace and name of a PodGroup."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What else gets the Events: the group, and the queues that pay for what the pods hold."""

    group: PodGroupView
    queues: tuple[QueueName, ...]


@dataclass(frozen=True, slots=True)
class MarkStale:
    """The condition is to say that the group of these pods has too few pods.

    Attributes:
        since: In RFC 3339.
        sides: What gets the Event, beside the pods.
    """

    pods: tuple[PodView, ...]
    since: str
    sentence: str
    sides: Sides


@dataclass(frozen=True, slots=True)
class MarkWhole:
    """The condition of these pods is to say that it is over."""

    pods: tuple[PodView, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class EvictGang:
    """All of these are to be evicted."""

    pods: tuple[PodView, ...]
    sentence: str
    sides: Sides


GangStep: TypeAlias = MarkStale | MarkWhole | EvictGang | RequeueAt


def gang_step(
    key: GroupKey, world: World, now: datetime, grace: timedelta | None
) -> GangStep | None:
    """What is next for a PodGroup; None for nothing until it changes.

    Args:
        key: Which group.
        world: What is known.
        now: The time.
        grace: Of groups that name none themselves; None for no end.
    """
    members = _members(key, world)
    left = tuple(p for p in members if p.is_bound and not p.ended and not p.deleting)
    marked = tuple(pod for pod in left if pod.stale_since)
    name = f"PodGroup {key[0]}/{key[1]}"
    least, group = _least(key, members, left, world), world.facts.group(*key)
    if group is not None and group.stale_grace is not None:
        grace = None if group.stale_grace == timedelta.max else group.stale_grace
    if least is None or group is None or grace is None:
        lasts = (
            "may have too few pods without a time limit"
            if least
            else "has as many pods as it needs"
        )
        return MarkWhole(marked, f"{name} {lasts}.") if marked else None
    sides = Sides(group, _payers(left, world))
    # A time in the future comes from a clock that was set right since.
    since = min([now, *(read_time(pod.stale_since) or now for pod in marked)])
    has = f"{len(left)} of the {least} pods that it needs"
    if unmarked := tuple(pod for pod in left if not pod.stale_since):
        until = f"if it is not back by {timestamp(since + grace)}"
        sentence = f"{name} has {has}: {until}, they are evicted."
        return MarkStale(unmarked, timestamp(since), sentence, sides)
    if now < since + grace:
        return RequeueAt(since + grace)
    sentence = f"{name} has had {has} since {timestamp(since)}, so they give their devices back."
    return EvictGang(left, sentence, sides)


def _members(key: GroupKey, world: World) -> list[PodView]:
    found = (world.facts.pod(uid) for uid in world.facts.pods_in_group(key))
    return [pod for pod in found if pod is not None]


def _least(
    key: GroupKey, members: Sequence[PodView], left: Sequence[PodView], world: World
) -> int | None:
    """How many pods a group needs that has too few and is to be evicted; None for any other."""
    group = world.facts.group(*key)
    if group is None or group.min_member is None or any(pod.succeeded for pod in members):
        return None
    coming = [p for p in members if p not in left and world.assumptions.is_assumed(p.uid)]
    if not 0 < len(left) < group.min_member - len(coming):
        return None
    names = world.facts.settings.scheduler_names
    if any(p.non_preemptible or p.is_mirror or p.scheduler not in names for p in left):
        return None
    return group.min_member if _payers(left, world) else None


def _payers(pods: Sequence[PodView], world: World) -> tuple[QueueName, ...]:
    """The queues that are charged for what these pods use."""
    found: dict[QueueName, None] = {}
    for pod in pods:
        entry, ledger = world.ledger.pod(pod.uid), world.ledger
        if entry is not None and entry.bound and entry.cost.items:
            found[entry.queue] = None
        claims = (ledger.claim(uid) for uid in world.facts.claims_consumed_by(pod.uid))
        found |= {claim.owner: None for claim in claims if claim is not None and claim.is_charged}
    return tuple(found)
