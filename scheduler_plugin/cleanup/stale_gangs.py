"""Stale gangs: a PodGroup lost pods, and its remaining pods hold devices without making progress.

    too few pods         the time is written on the remaining pods, so that a restart does not
                         extend the grace period
    ... and enough again the condition becomes False
    ... for too long     the remaining pods are evicted as one set

Nothing is done if a pod of the group succeeded, since the group then works with fewer pods, or if
one of the pods must not be evicted: it is non-preemptible, or belongs to another scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from kube.shapes.times import read_time, timestamp
from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.owner_exits import RequeueAt
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodGroupView, PodView

GroupKey: TypeAlias = tuple[str, str]
"""Namespace and name of a PodGroup."""


@dataclass(frozen=True, slots=True)
class EventTargets:
    """The other objects that get the Events: the group, and the queues that pay for its pods."""

    group: PodGroupView
    queues: tuple[QueueName, ...]


@dataclass(frozen=True, slots=True)
class MarkStale:
    """Set the condition on these pods: their group has too few pods.

    Attributes:
        since: The time in RFC 3339.
        event_targets: The objects that get the Event, beside the pods.
    """

    pods: tuple[PodView, ...]
    since: str
    sentence: str
    event_targets: EventTargets


@dataclass(frozen=True, slots=True)
class MarkWhole:
    """Set the condition on these pods to False."""

    pods: tuple[PodView, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class EvictGang:
    """Evict all of these pods."""

    pods: tuple[PodView, ...]
    sentence: str
    event_targets: EventTargets


GangStep: TypeAlias = MarkStale | MarkWhole | EvictGang | RequeueAt


def gang_step(
    key: GroupKey, world: World, now: datetime, grace: timedelta | None
) -> GangStep | None:
    """The next step for a PodGroup; None until something changes.

    Args:
        key: The group.
        world: The current state.
        now: The current time.
        grace: The grace period of groups that do not set one; None for no limit.
    """
    members = _members(key, world)
    remaining = tuple(p for p in members if p.is_bound and not p.ended and not p.deleting)
    marked = tuple(pod for pod in remaining if pod.stale_since)
    name = f"PodGroup {key[0]}/{key[1]}"
    least, group = _least(key, members, remaining, world), world.facts.group(*key)
    if group is not None and group.stale_grace is not None:
        grace = None if group.stale_grace == timedelta.max else group.stale_grace
    if least is None or group is None or grace is None:
        lasts = (
            "may have too few pods without a time limit"
            if least
            else "has as many pods as it needs"
        )
        return MarkWhole(marked, f"{name} {lasts}.") if marked else None
    event_targets = EventTargets(group, _payers(remaining, world))
    # A time in the future was written by a clock that was wrong.
    since = min([now, *(read_time(pod.stale_since) or now for pod in marked)])
    has = f"{len(remaining)} of the {least} pods that it needs"
    if unmarked := tuple(pod for pod in remaining if not pod.stale_since):
        until = f"at {timestamp(since + grace)}, unless the group is complete by then"
        sentence = f"{name} has {has}. They are evicted {until}."
        return MarkStale(unmarked, timestamp(since), sentence, event_targets)
    if now < since + grace:
        return RequeueAt(since + grace)
    sentence = f"{name} has had {has} since {timestamp(since)}, so they are evicted."
    return EvictGang(remaining, sentence, event_targets)


def _members(key: GroupKey, world: World) -> list[PodView]:
    found = (world.facts.pod(uid) for uid in world.facts.pods_in_group(key))
    return [pod for pod in found if pod is not None]


def _least(
    key: GroupKey, members: Sequence[PodView], remaining: Sequence[PodView], world: World
) -> int | None:
    """How many pods the group needs, if it has too few and may be evicted; None otherwise."""
    group = world.facts.group(*key)
    if group is None or group.min_member is None or any(pod.succeeded for pod in members):
        return None
    coming = [p for p in members if p not in remaining and world.assumptions.is_assumed(p.uid)]
    if not 0 < len(remaining) < group.min_member - len(coming):
        return None
    names = world.facts.settings.scheduler_names
    if any(p.non_preemptible or p.is_mirror or p.scheduler not in names for p in remaining):
        return None
    return group.min_member if _payers(remaining, world) else None


def _payers(pods: Sequence[PodView], world: World) -> tuple[QueueName, ...]:
    """The queues that are charged for these pods."""
    found: dict[QueueName, None] = {}
    for pod in pods:
        entry, ledger = world.ledger.pod(pod.uid), world.ledger
        if entry is not None and entry.bound and entry.cost.items:
            found[entry.queue] = None
        claims = (ledger.claim(uid) for uid in world.facts.claims_consumed_by(pod.uid))
        found |= {claim.owner: None for claim in claims if claim is not None and claim.is_charged}
    return tuple(found)
