"""Who uses what: a claim with all its users, or a bound pod with devices of its own requests.

They go together or not at all. Whoever is protected says why; in doubt everybody is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

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


def in_order(victims: Collection[Victim]) -> Iterator[Victim]:
    """Those whose eviction was begun, then the lowest priority, the youngest, the smallest.

    What began within one second is of one age: then fewer devices go first, and fewer pods.
    """
    smallest = sorted(victims, key=_size)
    youngest = sorted(smallest, key=lambda victim: victim.since, reverse=True)
    return iter(sorted(youngest, key=lambda victim: (not victim.is_begun, victim.priority)))


def _size(victim: Victim) -> tuple[int, int]:
    return sum(len(claim.results or ()) for claim in victim.claims), len(victim.users)
