"""Who uses what: a claim with all its users, or a bound pod with devices of its own requests.

They go together or not at all. Whoever is protected says why; in doubt everybody is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.pods import PodView


class Protection(StrEnum):
    """Why users stay, for a sentence about several of them."""

    ITS_OWN = "are used by whoever waits, or by pods of its queue that go before it"
    UNKNOWN = "have users that are not known, or are not bound yet"
    UNUSED = "are used by nobody who could go"
    NON_PREEMPTIBLE = "have users that are not preemptible"
    PRIORITY = "have users of the same or a higher priority"
    YOUNG = "have users that have not run for the least time that their queue gives them"
    HELD_BACK = "have users that may not be evicted now (a budget, or a policy)"
    QUOTA = "would leave a queue with less than its quota"


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """What one set of users holds.

    Attributes:
        what: The claim, or the pod, for a sentence.
        claim: None where it is the pod's own requests.
        users: All pods that use it and have not ended, those on their way out included.
        is_begun: Whether some of them are on their way out already.
        has_foreign: Whether pods of other queues than the owner use it and are to stay.
        priority: The highest among them.
        since: When the last of them began, as the API writes it.
    """

    what: str
    owner: QueueName
    claim: ClaimView | None
    users: tuple[PodView, ...]
    is_begun: bool
    has_foreign: bool
    priority: int
    since: str

    @property
    def pods(self) -> frozenset[PodUid]:
        return frozenset(pod.uid for pod in self.users)


@dataclass(frozen=True, slots=True)
class Away:
    """Pods that are not to be asked.

    Attributes:
        evicted: Those that were evicted and are not seen to go yet.
        held_back: Those that may not be evicted now.
    """

    evicted: Collection[PodUid] = frozenset()
    held_back: Collection[PodUid] = frozenset()


NOBODY_AWAY = Away()


@dataclass(frozen=True, slots=True)
class Asker:
    """For whom somebody is to go.

    Attributes:
        evicted: Pods that were evicted and are not seen to go yet.
        held_back: Pods that may not be evicted now.
    """

    pod: PodView
    queue: QueueName
    evicted: Collection[PodUid] = frozenset()
    held_back: Collection[PodUid] = frozenset()


def held_by_claim(uid: ClaimUid, world: World) -> Victim | Protection:
    """What a claim's users hold, all of which have to be known."""
    claim, charged = world.facts.claim(uid), world.ledger.claim(uid)
    if claim is None or charged is None:
        return Protection.UNUSED
    known = {pod.uid: pod for pod in world.facts.consumers(claim)}
    unknown = [u for u in claim.reserved_for if u not in known and world.may_be_bound(u)]
    if unknown or claim.other_consumers or world.assumptions.pods(uid):
        return Protection.UNKNOWN
    users = tuple(pod for pod in known.values() if not pod.ended)
    return _victim(str(claim), charged.owner, claim, users, world)


def held_by_pod(uid: PodUid, world: World) -> Victim | Protection:
    """What a bound pod's own requests hold."""
    pod, entry = world.facts.pod(uid), world.ledger.pod(uid)
    if pod is None or entry is None:
        return Protection.UNUSED
    return _victim(str(pod), entry.queue, None, (pod,), world)


def _victim(
    what: str,
    owner: QueueName,
    claim: ClaimView | None,
    users: tuple[PodView, ...],
    world: World,
) -> Victim | Protection:
    if not users:
        return Protection.UNUSED
    if any(not pod.is_bound or pod.is_mirror or world.facts.awaits(pod) for pod in users):
        return Protection.UNKNOWN
    if any(pod.non_preemptible and not pod.deleting for pod in users):
        return Protection.NON_PREEMPTIBLE
    return Victim(
        what=what,
        owner=owner,
        claim=claim,
        users=users,
        is_begun=any(pod.deleting for pod in users),
        has_foreign=any(world.facts.queue_of(p) != owner for p in users if not p.deleting),
        priority=max(pod.priority for pod in users),
        since=max(pod.arrived_at for pod in users),
    )


def protection(victim: Victim, asker: Asker, world: World, now: datetime) -> Protection | None:
    """Why these users stay although nothing else speaks for them; None where they may go."""
    going = [pod for pod in victim.users if not pod.deleting and pod.uid not in asker.evicted]
    if not going:
        return Protection.UNUSED
    if victim.claim is not None and _names(asker.pod, victim.claim):
        return Protection.ITS_OWN
    within = asker.queue in world.facts.tree.path(victim.owner)
    if within and any(pod.priority >= asker.pod.priority for pod in going):
        return Protection.PRIORITY
    if any(_goes_before(pod, asker, world) for pod in going):
        return Protection.ITS_OWN
    if any(_is_young(pod, _min_runtime(victim, asker, world), now) for pod in going):
        return Protection.YOUNG
    if any(pod.uid in asker.held_back for pod in going):
        return Protection.HELD_BACK
    return None


def _min_runtime(victim: Victim, asker: Asker, world: World) -> timedelta:
    tree = world.facts.tree
    if asker.queue in tree.path(victim.owner):
        return tree.preempt_min_runtime(victim.owner)
    return tree.reclaim_min_runtime(victim.owner, asker.queue)


def _is_young(pod: PodView, least: timedelta, now: datetime) -> bool:
    """Whether a pod has run for less; of one whose time cannot be read nobody knows."""
    if not least:
        return False
    try:
        return now < datetime.fromisoformat(pod.arrived_at) + least
    except (ValueError, TypeError):
        return True


def _names(pod: PodView, claim: ClaimView) -> bool:
    return claim.namespace == pod.namespace and claim.name in pod.claim_names


def _goes_before(pod: PodView, asker: Asker, world: World) -> bool:
    """Whether a foreign user is of the asker's queue, and no less urgent than it."""
    return pod.priority >= asker.pod.priority and world.facts.queue_of(pod) == asker.queue


def in_order(victims: Collection[Victim]) -> Iterator[Victim]:
    """Those whose eviction was begun, then the lowest priority, then the youngest."""
    youngest = sorted(victims, key=lambda victim: victim.since, reverse=True)
    return iter(sorted(youngest, key=lambda victim: (not victim.is_begun, victim.priority)))
