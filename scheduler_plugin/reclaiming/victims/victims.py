"""Victims: a claim with all its users, or a bound pod with devices of its own requests.

The users are evicted together or not at all. `Protection` says why users are protected; in doubt
they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import active_members
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.pods import PodGroupView, PodView
from scheduler_plugin.reclaiming.victims.effects import has_no_user_without


class Protection(StrEnum):
    """Why users are protected, for a sentence about several claims or pods."""

    ITS_OWN = "are used by the waiting pod, or by pods of its queue that go before it"
    UNKNOWN = "have users that are not known, or are not bound yet"
    STUCK = "have users that are terminating, and do not end"
    UNUSED = "are used by no pod that could be evicted"
    NON_PREEMPTIBLE = "have users that are not preemptible"
    PRIORITY = "have users of the same or a higher priority"
    WITHIN_SHARE = "are within the share of their queue in a resource that it lists"
    YOUNG = "have users that have not run for the minimum runtime of their queue"
    HELD_BACK = "have users that may not be evicted now (a budget, or a policy)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A claim, or a pod's own requests, with all users.

    Attributes:
        what: The claim, or the pod, for a sentence.
        owner: The queue that is charged.
        claim: None where it is the pod's own requests.
        claims: All claims that end with these users.
        users: All pods that use it and have not ended, terminating ones included; and the rest of
            their gangs, where too few pods of a PodGroup would be left.
        is_terminating: Whether some users are terminating already.
        priority: The highest priority of the users.
        since: When the last user began, as the API writes it.
    """

    what: str
    owner: QueueName
    claim: ClaimView | None
    claims: tuple[ClaimView, ...]
    users: tuple[PodView, ...]
    is_terminating: bool
    priority: int
    since: str

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        """The devices of the claims that end."""
        return tuple(device for claim in self.claims for device in claim.devices)

    @property
    def pods(self) -> frozenset[PodUid]:
        return frozenset(pod.uid for pod in self.users)


@dataclass(frozen=True, slots=True)
class ExcludedPods:
    """Pods that are no candidates.

    Attributes:
        evicted: Pods that were evicted and are not seen to terminate yet.
        held_back: Pods that may not be evicted now, each with the API server's reason.
        stuck: Pods that are terminating, and do not end.
    """

    evicted: Collection[PodUid] = frozenset()
    held_back: Mapping[PodUid, str] = field(default_factory=dict)
    stuck: Collection[PodUid] = frozenset()


NONE_EXCLUDED = ExcludedPods()


@dataclass(frozen=True, slots=True)
class Preemptor:
    """The preemptor: the pods for which targets are evicted.

    Attributes:
        pods: A pod and its gang, which are bound together or not at all.
        excluded: Pods that are no candidates.
        priority: The lowest priority of the pods.
    """

    pods: tuple[PodView, ...]
    queue: QueueName
    excluded: ExcludedPods
    priority: int = field(init=False)

    def __post_init__(self) -> None:
        # No pod is bound without the others, so the lowest priority counts.
        object.__setattr__(self, "priority", min(pod.priority for pod in self.pods))


def held_by_claim(uid: ClaimUid, world: WorldView) -> Victim | Protection:
    """A claim as a victim; all of its users have to be known. Pods that are not bound are none."""
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
    """A bound pod's own requests as a victim."""
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
        is_terminating=any(pod.deleting for pod in users),
        priority=max(pod.priority for pod in users),
        since=max(pod.arrived_at for pod in users),
    )


def with_whole_gangs(
    victim: Victim, gone: Collection[PodUid], evicted: Collection[PodUid], world: WorldView
) -> Victim | Protection:
    """The victim, extended by the whole gangs of which too few pods would be left.

    A pod that is not bound does not count as left: bound later, it would be alone of its PodGroup.

    Args:
        victim: The victim.
        gone: Pods that go anyway, by this decision or an earlier one.
        evicted: The pods of earlier decisions.
        world: The known objects.
    """
    if not any(pod.group for pod in victim.users):
        return victim
    users = {pod.uid: pod for pod in victim.users}
    broken: dict[str, None] = {}
    for pod in victim.users:
        group = world.facts.group(pod.namespace, pod.group) if pod.group else None
        if pod.deleting or group is None or not _may_go_whole(group, world):
            continue  # A PodGroup that does not exist protects no pod that names it.
        members = [m for m in active_members(pod, world.facts) if m.uid not in evicted]
        left = [m for m in members if m.uid not in (users.keys() | gone) and m.is_bound]
        if left and (group.goes_whole or _is_too_few(len(left), group)):
            users |= {other.uid: other for other in members if other.is_bound}
            broken[f" with all of PodGroup {pod.namespace}/{pod.group}"] = None
    if not broken:
        return victim
    return _as_one(victim, users, "".join(broken), gone, world)


def _may_go_whole(group: PodGroupView, world: WorldView) -> bool:
    return world.facts.pod_queues.has_groups and (group.goes_whole or group.min_member != 1)


def _is_too_few(left: int, group: PodGroupView) -> bool:
    return group.min_member is None or left < group.min_member


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
    claims = tuple(claim for claim in known if has_no_user_without(claim, gone, world))
    return replace(found, claims=claims)


def charged_for(victim: Victim, world: WorldView) -> Charges:
    """What is charged for the claim, or for the pod's own requests."""
    ledger = world.ledger
    found = (
        ledger.pod(victim.users[0].uid) if victim.claim is None else ledger.claim(victim.claim.uid)
    )
    return found.cost if found is not None else NO_CHARGES


def in_order(victims: Collection[Victim]) -> Iterator[Victim]:
    """In the order of eviction: terminating ones, then lowest priority, youngest, smallest.

    Ages are compared in whole seconds. The smallest has the fewest devices, then the fewest pods.
    """
    smallest = sorted(victims, key=_size)
    youngest = sorted(smallest, key=lambda victim: victim.since, reverse=True)
    return iter(sorted(youngest, key=lambda victim: (not victim.is_terminating, victim.priority)))


def _size(victim: Victim) -> tuple[int, int]:
    return sum(len(claim.results or ()) for claim in victim.claims), len(victim.users)
