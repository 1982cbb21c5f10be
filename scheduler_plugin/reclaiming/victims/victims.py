"""Who uses what: a claim with all its users, or a bound pod with devices of its own requests.

They go together or not at all. Whoever is protected says why; in doubt everybody is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from kube.shapes.times import read_time
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import is_of_gang, living_members
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.victims.effects import is_left_without


class Protection(StrEnum):
    """Why users stay, for a sentence about several of them."""

    ITS_OWN = "are used by whoever waits, or by pods of its queue that go before it"
    UNKNOWN = "have users that are not known, or are not bound yet"
    STUCK = "have users that are being deleted, and do not end"
    UNUSED = "are used by nobody who could go"
    NON_PREEMPTIBLE = "have users that are not preemptible"
    PRIORITY = "have users of the same or a higher priority"
    YOUNG = "have users that have not run for the least time that their queue gives them"
    HELD_BACK = "have users that may not be evicted now (a budget, or a policy)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """What one set of users holds.

    Attributes:
        what: The claim, or the pod, for a sentence.
        claim: None where it is the pod's own requests.
        claims: All that end with these users.
        users: All pods that use it and have not ended, those on their way out included; and those
            that go with them, since of their PodGroup too few would be left.
        is_begun: Whether some of them are on their way out already.
        priority: The highest among them.
        since: When the last of them began, as the API writes it.
    """

    what: str
    owner: QueueName
    claim: ClaimView | None
    claims: tuple[ClaimView, ...]
    users: tuple[PodView, ...]
    is_begun: bool
    priority: int
    since: str

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        """Those of the claims that end."""
        return tuple(device for claim in self.claims for device in claim.devices)

    @property
    def pods(self) -> frozenset[PodUid]:
        return frozenset(pod.uid for pod in self.users)


@dataclass(frozen=True, slots=True)
class Away:
    """Pods that are not to be asked.

    Attributes:
        evicted: Those that were evicted and are not seen to go yet.
        held_back: Those that may not be evicted now, each with what the API server said of that.
        stuck: Those that are being deleted, and do not end.
    """

    evicted: Collection[PodUid] = frozenset()
    held_back: Mapping[PodUid, str] = field(default_factory=dict)
    stuck: Collection[PodUid] = frozenset()


NOBODY_AWAY = Away()


@dataclass(frozen=True, slots=True)
class Asker:
    """For whom somebody is to go.

    Attributes:
        pods: They go together or not at all.
        away: Pods that are not to be asked.
    """

    pods: tuple[PodView, ...]
    queue: QueueName
    away: Away
    priority: int = field(init=False)

    def __post_init__(self) -> None:
        # None of them goes without the others: the least of them says what they may take.
        object.__setattr__(self, "priority", min(pod.priority for pod in self.pods))


def held_by_claim(uid: ClaimUid, world: WorldView) -> Victim | Protection:
    """What a claim's users hold, all of which have to be known; who is not bound uses nothing."""
    claim, charged = world.facts.claim(uid), world.ledger.claim(uid)
    if claim is None or charged is None:
        return Protection.UNUSED
    known = {pod.uid: pod for pod in world.facts.consumers(claim)}
    unknown = [u for u in claim.reserved_for if u not in known and world.may_be_bound(u)]
    if unknown or claim.other_consumers:
        return Protection.UNKNOWN
    users = tuple(pod for pod in known.values() if pod.is_bound and not pod.ended)
    return _victim(str(claim), charged.owner, claim, users, world)


def held_by_pod(uid: PodUid, world: WorldView) -> Victim | Protection:
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
    world: WorldView,
) -> Victim | Protection:
    if not users:
        return Protection.UNUSED
    if any(pod.is_mirror or world.facts.awaits(pod) for pod in users):
        return Protection.UNKNOWN
    if any(pod.non_preemptible and not pod.deleting for pod in users):
        return Protection.NON_PREEMPTIBLE
    return Victim(
        what=what,
        owner=owner,
        claim=claim,
        claims=() if claim is None else (claim,),
        users=users,
        is_begun=any(pod.deleting for pod in users),
        priority=max(pod.priority for pod in users),
        since=max(pod.arrived_at for pod in users),
    )


def whole(
    victim: Victim, gone: Collection[PodUid], evicted: Collection[PodUid], world: WorldView
) -> Victim | Protection:
    """The same with all of those PodGroups of which too few would be left.

    Who is not bound spares nobody: bound a moment later, it is what is left of its PodGroup.

    Args:
        victim: What some users hold.
        gone: Pods that go anyway, by this decision or an earlier one.
        evicted: The latter.
        world: What is known.
    """
    if not any(pod.group for pod in victim.users):
        return victim
    users = {pod.uid: pod for pod in victim.users}
    broken: dict[str, None] = {}
    for pod in victim.users:
        if pod.deleting or not is_of_gang(pod, world.facts):
            continue
        group = world.facts.group(pod.namespace, pod.group)
        if group is None:
            continue  # No longer there; one that never was would spare whoever names it.
        members = [m for m in living_members(pod, world.facts) if m.uid not in evicted]
        left = [m for m in members if m.uid not in (users.keys() | gone) and m.is_bound]
        if left and (group.min_member is None or len(left) < group.min_member):
            users |= {other.uid: other for other in members if other.is_bound}
            broken[f" with all of PodGroup {pod.namespace}/{pod.group}"] = None
    if not broken:
        return victim
    return _as_one(victim, users, "".join(broken), gone, world)


def _as_one(
    victim: Victim,
    users: dict[PodUid, PodView],
    more: str,
    gone: Collection[PodUid],
    world: WorldView,
) -> Victim | Protection:
    pods = tuple(users.values())
    found = _victim(victim.what + more, victim.owner, victim.claim, pods, world)
    if isinstance(found, Protection):
        return found
    uids = dict.fromkeys(uid for pod in pods for uid in world.facts.claims_consumed_by(pod.uid))
    known = (claim for uid in uids if (claim := world.facts.claim(uid)) is not None)
    gone = {*gone, *users}
    claims = tuple(claim for claim in known if is_left_without(claim, gone, world))
    return replace(found, claims=claims)


def protection(victim: Victim, asker: Asker, world: WorldView, now: datetime) -> Protection | None:
    """Why these users stay although nothing else speaks for them; None where they may go."""
    away = asker.away
    if any(pod.uid in away.stuck for pod in victim.users):
        return Protection.STUCK
    going = [pod for pod in victim.users if not pod.deleting and pod.uid not in away.evicted]
    if not going:
        return Protection.UNUSED
    if any(_is_its_own(pod, victim) for pod in asker.pods):
        return Protection.ITS_OWN
    if why := _is_as_urgent(victim, going, asker, world):
        return why
    least = _min_runtime(victim, asker, world)
    if least and any(_is_young(_started_at(pod, world), least, now) for pod in going):
        return Protection.YOUNG
    if any(pod.uid in away.held_back for pod in going):
        return Protection.HELD_BACK
    return None


def _is_as_urgent(
    victim: Victim, going: Collection[PodView], asker: Asker, world: WorldView
) -> Protection | None:
    """Where the asker's own queue is what is asked, only what is less urgent goes."""
    if _was_left_to_others(victim, asker, world):
        return None
    within = asker.queue in world.facts.tree.path(victim.owner)
    if within and any(pod.priority >= asker.priority for pod in going):
        return Protection.PRIORITY
    before = any(_goes_before(pod, asker, world) for pod in going)
    return Protection.ITS_OWN if before else None


def _was_left_to_others(victim: Victim, asker: Asker, world: WorldView) -> bool:
    """Whether a claim is the asker's queue's, and no pod of that queue uses it or is about to."""
    if victim.claim is None or victim.owner != asker.queue:
        return False
    uids = {*victim.claim.reserved_for, *world.assumptions.pods(victim.claim.uid)}
    pods = [pod for uid in uids if (pod := world.facts.pod(uid)) is not None]
    own = (p for p in pods if world.facts.queue_of(p) == victim.owner)
    return all(pod.ended or pod.deleting for pod in own)


def _min_runtime(victim: Victim, asker: Asker, world: WorldView) -> timedelta:
    tree = world.facts.tree
    if asker.queue in tree.path(victim.owner):
        return tree.preempt_min_runtime(victim.owner)
    return tree.reclaim_min_runtime(victim.owner, asker.queue)


def _started_at(pod: PodView, world: WorldView) -> str:
    """When a pod began; one of a PodGroup when as many of that were bound as it needs.

    A pod that came later, in place of one that failed, does not make the others young again.
    """
    if not is_of_gang(pod, world.facts):
        return pod.arrived_at
    group = world.facts.group(pod.namespace, pod.group)
    bound = sorted(m.arrived_at for m in living_members(pod, world.facts) if m.is_bound)
    least = (group.min_member if group is not None else None) or len(bound)
    return bound[min(least, len(bound)) - 1] if bound else pod.arrived_at


def _is_young(since: str, least: timedelta, now: datetime) -> bool:
    """Whether less time has passed; of a time that cannot be read nobody knows."""
    started = read_time(since)
    return started is None or now < started + least


def _is_its_own(pod: PodView, victim: Victim) -> bool:
    """Whether a pod that waits uses it as well, or those who do are of its own group."""
    claim = victim.claim
    if claim is not None and claim.namespace == pod.namespace and claim.name in pod.claim_names:
        return True
    group = (pod.namespace, pod.group)
    return bool(pod.group) and any((user.namespace, user.group) == group for user in victim.users)


def _goes_before(pod: PodView, asker: Asker, world: WorldView) -> bool:
    """Whether a foreign user is of the asker's queue, and no less urgent than it."""
    return pod.priority >= asker.priority and world.facts.queue_of(pod) == asker.queue


def in_order(victims: Collection[Victim]) -> Iterator[Victim]:
    """Those whose eviction was begun, then the lowest priority, the youngest, the smallest.

    What began within one second is of one age: then fewer devices go first, and fewer pods.
    """
    smallest = sorted(victims, key=_size)
    youngest = sorted(smallest, key=lambda victim: victim.since, reverse=True)
    return iter(sorted(youngest, key=lambda victim: (not victim.is_begun, victim.priority)))


def _size(victim: Victim) -> tuple[int, int]:
    return sum(len(claim.results or ()) for claim in victim.claims), len(victim.users)
