"""What is stale on claims: owners that ended, orphans, finished pods, allocations without a pod.

An owner that the binder wrote ends with the allocation. It has ended, too, where its pod is not a
consumer and no consumer has a node (`owners.is_stale`): otherwise one queue would run once, and
other queues would run on its quota from then on. With `ownerLifetime: Claim` it never ends. An
owner that a user named at creation names no pod, and never ends either. An owner stays where a
binding may rely on it, or where too little is known:

    a decision in flight     its binding writes the owner itself
    an unknown consumer      it is deleted, and Kubernetes' controller has not taken it out of the
                             claim yet; or it is too new to be known, and may have a node

An orphan is in use and has no owner. It was in use before Moorage was installed, or another
scheduler bound its pod: a binding of Moorage's own writes the owner first. So a claim is no orphan
while all its consumers wait to be bound, or while a decision in flight is about it. While a
consumer is not known, the oldest consumer is not known either.

Refused bindings and dead controllers leave more, and it is cleared:

    finished pods              a claim is reserved for pods that ended, and Kubernetes' own
                               controller did not take them out: their entries are removed
    a left-over allocation     no pod reserves it, and no pod is about to: a pod could stay pending
                               on it, or a queue pay for it. At once where a device of it is held
                               for another pod: the pod that was given the device was refused
    a lost queue               the label names a queue that does not exist. It is reported: a
                               label changes only when the claim is deleted

Only what has been so for a grace period is cleared: a binding under way loses nothing, and
Kubernetes' controller has its time. A process measures the grace period from when it first saw it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_plugin.accounting.charges.costs import is_accounted
from scheduler_plugin.accounting.charges.owners import is_stale, labelled_owner, orphan_owner
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.bindings import ClaimOwner, claim_owner
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_POD, ClaimUid, PodUid, QueueName

GRACE = timedelta(minutes=2)
"""Longer than a decision in flight is assumed, and than kube-scheduler backs off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedOwner:
    """A claim whose owner ended.

    Attributes:
        resource_version: Of the claim as it was judged; the precondition of the removal.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str


def ended_owner(uid: ClaimUid, world: World) -> EndedOwner | None:
    """The owner that is to be removed from a claim; None for none, or not yet."""
    claim = world.facts.claim(uid)
    if claim is None or not claim.owner_pod or not _has_ended(claim, world):
        return None
    return EndedOwner(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.resource_version,
    )


def _has_ended(claim: ClaimView, world: World) -> bool:
    if not is_stale(claim, world.facts) or world.assumptions.pods(claim.uid):
        return False
    known = sum(1 for _ in world.facts.consumers(claim))
    return known == len(claim.reserved_for) and (not claim.is_allocated or bool(claim.label))


@dataclass(frozen=True, slots=True)
class Attribution:
    """An orphan and its owner from now on.

    Attributes:
        owner: What the binder is to write.
        sentence: For the Event.
    """

    owner: ClaimOwner
    sentence: str


def attribution(uid: ClaimUid, world: World) -> Attribution | None:
    """The queue that an orphan is attributed to; None for none, and for other claims."""
    claim, entry = world.facts.claim(uid), world.ledger.claim(uid)
    if claim is None or entry is None or not entry.orphan or uid in world.assumptions:
        return None
    if sum(1 for _ in world.facts.consumers(claim)) < len(claim.reserved_for):
        return None
    found = orphan_owner(claim, world.facts)
    if found is None or found.pod is None:
        return None
    pod = world.facts.pod(found.pod)
    sentence = (
        f'{claim} was in use and belonged to no queue. It belongs to queue "{found.queue}" now, the'
        f" queue of {pod}, the oldest of its pods that has one."
    )
    return Attribution(claim_owner(claim, found.queue, found.pod), sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCleared:
    """A claim's status as it should be.

    Attributes:
        resource_version: Of the claim as it was judged; the precondition of the write.
        gone: Finished pods to be taken out of `reservedFor`.
        deallocate: Whether the allocation goes, since no consumer is left.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str
    gone: tuple[PodUid, ...]
    deallocate: bool


@dataclass(frozen=True, slots=True)
class LostQueue:
    """A claim whose label names no queue."""

    claim: ClaimView
    queue: QueueName

    def __str__(self) -> str:
        """A sentence for people."""
        said = f'{self.claim} belongs to queue "{self.queue}", which does not exist'
        if self.claim.is_allocated:
            return f"{said}: its use is charged to no limit until the queue is made again."
        return f"{said}: pods cannot use it until the queue, or the claim, is made again."


def lost_queue(uid: ClaimUid, world: World) -> LostQueue | None:
    """Whether a claim belongs to a queue that does not exist."""
    claim = world.facts.claim(uid)
    owner = labelled_owner(claim, world.facts) if claim is not None else None
    if claim is None or not owner or owner in world.facts.tree:
        return None
    return LostQueue(claim, owner) if is_accounted(claim, world.facts.catalog) else None


class Leftovers:
    """Since when claims have had finished pods, or an allocation without a pod."""

    def __init__(self, world: World, grace: timedelta = GRACE) -> None:
        self._world = world
        self._grace = grace
        # By finished pod, each with its own grace; by no pod for an allocation without any.
        self._since: dict[ClaimUid, dict[PodUid, datetime]] = {}

    def __len__(self) -> int:
        return len(self._since)

    def look(self, uid: ClaimUid, now: datetime) -> ClaimCleared | datetime | None:
        """What to clear of a claim now, or when to look again; None for nothing."""
        claim = self._world.facts.claim(uid)
        found = _left_over(claim, self._world) if claim is not None else None
        if claim is None or found is None:
            self._since.pop(uid, None)
            return None
        since = self._since[uid] = self._since_when(uid, found, now)
        grace = timedelta(0) if found.is_held else self._grace
        over = [pod for pod, moment in since.items() if moment + grace <= now]
        if not over:
            return min(since.values()) + self._grace
        return ClaimCleared(
            namespace=claim.namespace,
            name=claim.name,
            uid=uid,
            resource_version=claim.resource_version,
            gone=tuple(pod for pod in over if pod != NO_POD),
            deallocate=found.is_all and len(over) == len(since),
        )

    def _since_when(self, uid: ClaimUid, found: _LeftOver, now: datetime) -> dict[PodUid, datetime]:
        """After a clock was set back, the grace period starts at most once more."""
        known = self._since.get(uid, {})
        return {pod: min(known.get(pod, now), now) for pod in found.finished or (NO_POD,)}


@dataclass(frozen=True, slots=True)
class _LeftOver:
    finished: tuple[PodUid, ...]
    is_all: bool
    is_held: bool


def _left_over(claim: ClaimView, world: World) -> _LeftOver | None:
    """What is left over; the cheap questions come first, which rule out most claims."""
    if not claim.is_allocated:
        return None
    facts = world.facts
    finished = tuple(pod.uid for pod in facts.consumers(claim) if pod.ended)
    is_all = len(finished) == len(claim.reserved_for) and not claim.other_consumers
    is_held = is_all and not finished and _is_held_for_others(claim, world)
    if not (finished or is_all) or (claim.uid in world.assumptions and not is_held):
        return None
    if not is_accounted(claim, facts.catalog) or _is_of_extended_resources(claim, facts):
        return None
    return _LeftOver(finished, is_all, is_held)


def _is_held_for_others(claim: ClaimView, world: World) -> bool:
    """Whether a device of a claim is held for a pod that does not name it."""
    holds = world.assumptions.holds.of_devices()
    held = {device: hold.pod for hold in holds for device, _ in hold.devices}
    waits = [held[r.device_id] for r in claim.results or () if r.device_id in held]
    return bool(set(waits) - {pod.uid for pod in world.facts.pods_naming(claim)})


def _is_of_extended_resources(claim: ClaimView, facts: FactsView) -> bool:
    """Whether kube-scheduler made the claim, which deletes it, too."""
    return any(pod.extended_claim == claim.name for pod in facts.pods_naming(claim))
