"""Stale parts of claims: ended owners, orphans, finished consumers, allocations without a consumer.

An owner that the binder wrote ends with the allocation. It has also ended if its pod is not a
consumer and no consumer has a node (`owners.is_stale`): otherwise a queue that ran one pod would
pay for other queues from then on. With `ownerLifetime: Claim` an owner never ends. An owner that a
user named at creation has no pod, and never ends either. An owner stays while a binding may rely on
it, or while too little is known:

    a decision in flight     its binding writes the owner itself
    an unknown consumer      the pod is deleted, and kube-controller-manager has not removed it from
                             the claim yet; or the pod is too new to be known, and may have a node

An orphan is in use and has no owner. It was in use before Moorage was installed, or another
scheduler bound its pod: a binding of Moorage writes the owner first. So a claim is no orphan while
all its consumers wait to be bound, or while a decision about it is in flight. While a consumer is
unknown, the oldest consumer is unknown too.

Refused bindings and failed controllers cause more stale state:

    finished consumers         a claim is reserved for pods that ended, and kube-controller-manager
                               did not remove them: their entries are removed
    a PodGroup without users   no bound pod of the group uses the claim any more, none is nominated,
                               and kube-controller-manager keeps the entry until the group is
                               deleted: the entry is removed
    an unused allocation       no pod reserves the claim, and no decision about it is in flight: a
                               pod could stay pending on it, or a queue pay for it
    a lost queue               the label names a queue that does not exist. This is only reported: a
                               label changes only when the claim is deleted

Stale state is cleared after a grace period, so that bindings in progress keep what they wrote and
kube-controller-manager has time to act. An allocation that was taken back for another pod is
cleared at once. Each process measures the grace period from the time at which it first observed
the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_plugin.accounting.charges.costs import is_accounted
from scheduler_plugin.accounting.charges.owners import is_stale, labelled_owner, orphan_owner
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.bindings import ClaimOwner, claim_owner
from scheduler_plugin.objects.claims import ClaimView, GroupConsumer
from scheduler_plugin.objects.names import NO_POD, ClaimUid, PodUid, QueueName

GRACE = timedelta(minutes=2)
"""Longer than a decision in flight is assumed, and than kube-scheduler backs off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedOwner:
    """A claim whose owner ended, and is to be removed.

    Attributes:
        resource_version: The version of the claim that was judged; the precondition of the write.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str


def ended_owner(uid: ClaimUid, world: World) -> EndedOwner | None:
    """The owner to remove from a claim; None if it has no stale owner, or not yet."""
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
    """An orphan and its new owner.

    Attributes:
        owner: What the binder writes.
        sentence: The note of the Event.
    """

    owner: ClaimOwner
    sentence: str


def attribution(uid: ClaimUid, world: World) -> Attribution | None:
    """The queue that an orphan is attributed to; None if there is none, or it is no orphan."""
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
    """What to remove from a claim's status.

    Attributes:
        resource_version: The version of the claim that was judged; the precondition of the write.
        gone: UIDs of finished pods to remove from `reservedFor`.
        groups: PodGroups without users to remove from it.
        deallocate: Whether to remove the allocation, since no consumer remains.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str
    gone: tuple[PodUid, ...]
    groups: tuple[GroupConsumer, ...] = ()
    deallocate: bool

    def covers(self, other: ClaimCleared) -> bool:
        """Whether it removes all that an earlier decision removes."""
        has_all = set(self.gone) >= set(other.gone) and set(self.groups) >= set(other.groups)
        return has_all and self.deallocate >= other.deallocate


@dataclass(frozen=True, slots=True)
class LostQueue:
    """A claim whose label names a queue that does not exist."""

    claim: ClaimView
    queue: QueueName

    def __str__(self) -> str:
        """A sentence for people."""
        said = f'{self.claim} belongs to queue "{self.queue}", which does not exist'
        if self.claim.is_allocated:
            return f"{said}: its use counts against no limit. Create the queue again."
        return f"{said}: pods cannot use it. Create the queue or the claim again."


def lost_queue(uid: ClaimUid, world: World) -> LostQueue | None:
    """The report about a claim whose queue does not exist; None for any other claim."""
    claim = world.facts.claim(uid)
    owner = labelled_owner(claim, world.facts) if claim is not None else None
    if claim is None or not owner or owner in world.facts.tree:
        return None
    return LostQueue(claim, owner) if is_accounted(claim, world.facts.catalog) else None


class StaleClaims:
    """Since when claims have had finished consumers, or an allocation without a consumer."""

    def __init__(self, world: World, grace: timedelta = GRACE) -> None:
        self._world = world
        self._grace = grace
        # Keys are UIDs of finished pods and unused PodGroups, each with its own grace; `NO_POD`
        # stands for an unused allocation.
        self._since: dict[ClaimUid, dict[str, datetime]] = {}

    def __len__(self) -> int:
        return len(self._since)

    def look(self, uid: ClaimUid, now: datetime) -> ClaimCleared | datetime | None:
        """What to clear on a claim now, or when to look again; None if nothing is stale."""
        claim = self._world.facts.claim(uid)
        found = _stale_parts(claim, self._world) if claim is not None else None
        if claim is None or found is None:
            self._since.pop(uid, None)
            return None
        if found.is_in_flight:
            # It ends well, and then the claim has users; or not, and then the grace goes on.
            return None
        since = self._since[uid] = self._since_when(uid, found, now)
        grace = timedelta(0) if found.is_held else self._grace
        over = {stale for stale, moment in since.items() if moment + grace <= now}
        if not over:
            return min(since.values()) + self._grace
        return ClaimCleared(
            namespace=claim.namespace,
            name=claim.name,
            uid=uid,
            resource_version=claim.resource_version,
            gone=tuple(pod for pod in found.finished if pod in over),
            groups=tuple(group for group in found.groups if group.uid in over),
            deallocate=found.is_all and len(over) == len(since),
        )

    def _since_when(self, uid: ClaimUid, found: _StaleParts, now: datetime) -> dict[str, datetime]:
        """When each stale part was first observed. A clock set back restarts the grace period."""
        known = self._since.get(uid, {})
        stale = (*found.finished, *(group.uid for group in found.groups)) or (NO_POD,)
        return {each: min(known.get(each, now), now) for each in stale}


@dataclass(frozen=True, slots=True)
class _StaleParts:
    finished: tuple[PodUid, ...]
    groups: tuple[GroupConsumer, ...]
    is_all: bool
    is_held: bool
    is_in_flight: bool


def _stale_parts(claim: ClaimView, world: World) -> _StaleParts | None:
    """The stale parts of a claim. The cheap checks, which rule out most claims, come first."""
    if not claim.is_allocated:
        return None
    facts = world.facts
    finished = tuple(pod.uid for pod in facts.consumers(claim) if pod.ended)
    # Bind refuses a nominated pod that would get what is held for another.
    is_taken_back = bool(claim.groups) and _is_held_for_others(claim, world)
    groups = facts.groups_without_users(claim, or_nominated=not is_taken_back)
    stale = len(finished) + len(groups)
    is_all = stale == claim.consumer_entries
    is_held = is_all and not finished and _is_held_for_others(claim, world)
    if not (finished or groups or is_all):
        return None
    if not is_accounted(claim, facts.catalog) or _is_of_extended_resources(claim, facts):
        return None
    is_in_flight = _is_in_flight(claim, world, is_held=is_held)
    return _StaleParts(finished, groups, is_all, is_held, is_in_flight)


def _is_in_flight(claim: ClaimView, world: World, *, is_held: bool) -> bool:
    """Whether a decision about the claim is in flight; Bind refuses what is held for another pod.

    A pod whose binding was requested may run, and its PodGroup's reservation does not show it.
    """
    if not is_held:
        return claim.uid in world.assumptions
    return any(map(world.assumptions.awaits_binding, world.assumptions.pods(claim.uid)))


def _is_held_for_others(claim: ClaimView, world: World) -> bool:
    """Whether the claim, or a device of it, is held for a pod that does not name it."""
    devices = {result.device_id for result in claim.results or ()}
    waits = {
        hold.pod
        for hold in world.assumptions.holds
        if claim.uid in hold.awaits or any(device in devices for device, _ in hold.devices)
    }
    return bool(waits - {pod.uid for pod in world.facts.pods_naming(claim)})


def _is_of_extended_resources(claim: ClaimView, facts: FactsView) -> bool:
    """Whether kube-scheduler made the claim for extended resources, and deletes it itself."""
    return any(pod.extended_claim == claim.name for pod in facts.pods_naming(claim))
