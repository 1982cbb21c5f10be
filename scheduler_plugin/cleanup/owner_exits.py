"""Owner exit: pods of other queues use a claim, and no pod of its owner does.

    an owner's pod uses the claim, or is admitted to it
                             the exit time is removed from the claim
    only foreign pods        the exit time is written on the claim, so that a restart does not
                             extend the grace period
    ... and the grace period is over
                             all foreign pods are evicted as one set, if the owner's `onOwnerExit`
                             says so, or the claim's annotation asks for it and the owner's
                             `evictForeign` allows it

An owner that never had a pod counts as exited: it pays for the claim and does not use it. Nothing
is decided while a consumer, or its queue, is unknown: the consumer may belong to the owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Self, TypeAlias

from kube.shapes.times import read_time, timestamp
from scheduler_plugin.accounting.queues.effective_sharing import EffectiveSharing
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.gangs import active_members
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import ClaimUid, OnOwnerExit, PodUid, QueueName, SharingPolicy
from scheduler_plugin.objects.pods import PodView, oldest


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerExitTime:
    """The exit time to write on a claim, as an annotation.

    Attributes:
        resource_version: The version of the claim that was judged; the precondition of the write.
        value: The time in RFC 3339; None removes the annotation.
        sentence: The note of the Event; "" for no Event.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str
    value: str | None
    sentence: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PodToEvict:
    """A pod to evict. Its UID is the precondition of the eviction."""

    namespace: str
    name: str
    uid: PodUid

    @classmethod
    def of(cls, pod: PodView) -> Self:
        """The reference to a known pod."""
        return cls(pod.namespace, pod.name, pod.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictForeign:
    """The eviction of all foreign pods of a claim, and of the rest of some of their PodGroups.

    Attributes:
        why: The note of the Events on the pods and the claim.
    """

    namespace: str
    name: str
    uid: ClaimUid
    owner: QueueName
    pods: tuple[PodToEvict, ...]
    why: str


@dataclass(frozen=True, slots=True)
class RequeueAt:
    """Nothing is to be done before this time."""

    at: datetime


MAX_CLOCK_SKEW = timedelta(minutes=1)
"""An exit time further in the future was written by a clock that was wrong."""

OwnerExit: TypeAlias = OwnerExitTime | EvictForeign | RequeueAt


def owner_exit(uid: ClaimUid, world: World, now: datetime) -> OwnerExit | None:
    """The next step for a claim's foreign pods; None until something changes."""
    claim = world.facts.claim(uid)
    if claim is None:
        return None
    owner = _owner(claim, world)
    is_used = bool(owner) and _owner_uses(claim, owner, world)
    if is_used and not claim.owner_left_at:
        return None
    if not _all_are_known(claim, world):
        return None
    foreign = _foreign(claim, owner, world)
    if is_used or not owner or not foreign:
        return _exit_time(claim, None) if claim.owner_left_at else None
    exit_time, sharing = read_time(claim.owner_left_at), world.facts.tree.sharing(owner)
    if exit_time is None or exit_time > now + MAX_CLOCK_SKEW:
        return _exit_begins(_Exit(claim, owner, foreign, now), sharing)
    # The exit time may be from an earlier allocation, before these pods arrived.
    arrived = read_time(min(pod.arrived_at for pod in foreign))
    return _eviction(
        _Exit(claim, owner, foreign, max(exit_time, arrived or exit_time)), sharing, world, now
    )


def _all_are_known(claim: ClaimView, world: World) -> bool:
    """Whether every consumer and its queue are known."""
    known = list(world.facts.consumers(claim))
    whose = all(pod.ended or world.facts.knows_queue_of(pod) for pod in known)
    return whose and len(known) == len(claim.reserved_for)


def may_continue(found: EvictForeign, world: World) -> bool:
    """Whether an eviction in progress may continue.

    Evicted pods may be gone and still be listed as consumers, so `owner_exit` decides nothing
    meanwhile. A new pod of the owner stops the eviction, and so does a new owner.
    """
    claim = world.facts.claim(found.uid)
    if claim is None or _owner(claim, world) != found.owner:
        return False
    return not _owner_uses(claim, found.owner, world)


def _owner(claim: ClaimView, world: World) -> QueueName:
    entry = world.ledger.claim(claim.uid)
    return entry.owner if entry is not None else QueueName("")


def _foreign(claim: ClaimView, owner: QueueName, world: World) -> tuple[PodView, ...]:
    """The running pods of other queues, the oldest first."""
    running = (p for p in world.facts.consumers(claim) if p.is_bound and not p.ended)
    return tuple(oldest(pod for pod in running if world.facts.queue_of(pod) != owner))


def _owner_uses(claim: ClaimView, owner: QueueName, world: World) -> bool:
    """Whether a pod of the owner uses the claim, or was admitted to it."""
    in_flight = (world.facts.pod(uid) for uid in world.assumptions.pods(claim.uid))
    pods = chain(world.facts.reserving(claim), (pod for pod in in_flight if pod is not None))
    return any(not pod.ended and world.facts.queue_of(pod) == owner for pod in pods)


def _exit_time(claim: ClaimView, value: str | None, sentence: str = "") -> OwnerExitTime:
    return OwnerExitTime(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.resource_version,
        value=value,
        sentence=sentence,
    )


@dataclass(frozen=True, slots=True)
class _Exit:
    """A claim that only foreign pods use.

    Attributes:
        since: The exit time.
    """

    claim: ClaimView
    owner: QueueName
    foreign: tuple[PodView, ...]
    since: datetime


def _exit_begins(found: _Exit, sharing: EffectiveSharing) -> OwnerExitTime:
    """The exit time, with a sentence that says what happens to the foreign pods."""
    fate = "They keep it, and the queue stays charged."
    if why_evict := _why_evict(found, sharing):
        due = found.since + sharing.owner_exit_grace_period
        until = f"from {timestamp(due)} on, unless a pod of that queue uses the claim before"
        fate = f"{why_evict}: they are evicted {until}."
    sentence = (
        f'{found.claim} belongs to queue "{found.owner}". No pod of that queue uses it any more;'
        f" pods of other queues do ({len(found.foreign)}). {fate}"
    )
    return _exit_time(found.claim, timestamp(found.since), sentence)


def _eviction(
    found: _Exit, sharing: EffectiveSharing, world: World, now: datetime
) -> OwnerExit | None:
    why_evict = _why_evict(found, sharing)
    if not why_evict:
        return None
    due = found.since + sharing.owner_exit_grace_period
    if now < due:
        return RequeueAt(due)
    pods = tuple(pod for pod in found.foreign if not pod.deleting)
    if not pods:
        return None
    claim = found.claim
    why = (
        f'{claim} belongs to queue "{found.owner}", whose last pod stopped using it at'
        f" {timestamp(found.since)}. {why_evict}: pods of other queues are to be evicted."
    )
    return EvictForeign(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        owner=found.owner,
        pods=tuple(map(PodToEvict.of, (*_rest_of_groups(pods, found.owner, world), *pods))),
        why=why,
    )


def _rest_of_groups(pods: tuple[PodView, ...], owner: QueueName, world: World) -> Iterator[PodView]:
    """The other running pods of PodGroups whose pods are disrupted together only.

    They are evicted first: while the users are there, a set that was begun is continued. Pods of
    the owner are never evicted, and none that is not preemptible goes because of others.
    """
    seen = {pod.uid for pod in pods}
    for pod in pods:
        group = world.facts.group(pod.namespace, pod.group) if pod.group else None
        members = active_members(pod, world.facts) if group and group.goes_whole else ()
        for member in members:
            may_go = not member.non_preemptible and world.facts.queue_of(member) != owner
            if member.is_bound and may_go and member.uid not in seen:
                seen.add(member.uid)
                yield member


def _why_evict(found: _Exit, sharing: EffectiveSharing) -> str:
    """Why foreign pods are evicted, as the begin of a sentence; "" if they are not."""
    if sharing.on_owner_exit is OnOwnerExit.EVICT:
        return f'Queue "{found.owner}" has onOwnerExit: Evict'
    if found.claim.evict_foreign and sharing.evict_foreign is SharingPolicy.ALLOW:
        return "The claim asks for it by its annotation"
    return ""
