"""Why the users of a victim are protected from one preemptor at present."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from kube.shapes.times import read_time
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import active_members, is_of_gang
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.victims.victims import Preemptor, Protection, Victim


def protection(
    victim: Victim, preemptor: Preemptor, world: WorldView, now: datetime
) -> Protection | None:
    """Why these users are protected from this preemptor now; None where they may be evicted."""
    excluded = preemptor.excluded
    if any(pod.uid in excluded.stuck for pod in victim.users):
        return Protection.STUCK
    evictable = [
        pod for pod in victim.users if not pod.deleting and pod.uid not in excluded.evicted
    ]
    if not evictable:
        return Protection.UNUSED
    if any(_is_its_own(pod, victim) for pod in preemptor.pods):
        return Protection.ITS_OWN
    if why := _why_as_urgent(victim, evictable, preemptor, world):
        return why
    least = _min_runtime(victim, preemptor, world)
    if least and any(_is_young(_started_at(pod, world), least, now) for pod in evictable):
        return Protection.YOUNG
    if any(pod.uid in excluded.held_back for pod in evictable):
        return Protection.HELD_BACK
    return None


def _why_as_urgent(
    victim: Victim, evictable: Collection[PodView], preemptor: Preemptor, world: WorldView
) -> Protection | None:
    """Why users in the preemptor's own queue are protected: they have no lower priority."""
    if _was_left_to_others(victim, preemptor, world):
        return None
    within = preemptor.queue in world.facts.tree.path(victim.owner)
    if within and any(pod.priority >= preemptor.priority for pod in evictable):
        return Protection.PRIORITY
    before = any(_goes_before(pod, preemptor, world) for pod in evictable)
    return Protection.ITS_OWN if before else None


def _was_left_to_others(victim: Victim, preemptor: Preemptor, world: WorldView) -> bool:
    """Whether the preemptor's queue owns a claim that no pod of it uses, reserves or may bind."""
    if victim.claim is None or victim.owner != preemptor.queue:
        return False
    assumed = map(world.facts.pod, world.assumptions.pods(victim.claim.uid))
    pods = [*world.facts.reserving(victim.claim), *(pod for pod in assumed if pod is not None)]
    own = (p for p in pods if world.facts.queue_of(p) == victim.owner)
    return all(pod.ended or pod.deleting for pod in own)


def _min_runtime(victim: Victim, preemptor: Preemptor, world: WorldView) -> timedelta:
    tree = world.facts.tree
    if preemptor.queue in tree.path(victim.owner):
        return tree.preempt_min_runtime(victim.owner)
    return tree.reclaim_min_runtime(victim.owner, preemptor.queue)


def _started_at(pod: PodView, world: WorldView) -> str:
    """When a pod began; for a gang, when as many pods were bound as it needs.

    A pod that was bound later, as a replacement, does not make the gang young again.
    """
    if not is_of_gang(pod, world.facts):
        return pod.arrived_at
    group = world.facts.group(pod.namespace, pod.group)
    bound = sorted(m.arrived_at for m in active_members(pod, world.facts) if m.is_bound)
    least = (group.min_member if group is not None else None) or len(bound)
    return bound[min(least, len(bound)) - 1] if bound else pod.arrived_at


def _is_young(since: str, least: timedelta, now: datetime) -> bool:
    """Whether less than `least` has passed; True where the time cannot be read."""
    started = read_time(since)
    return started is None or now < started + least


def _is_its_own(pod: PodView, victim: Victim) -> bool:
    """Whether a waiting pod uses the victim's claim as well, or is of the same PodGroup."""
    claim = victim.claim
    if claim is not None and claim.namespace == pod.namespace and claim.name in pod.claim_names:
        return True
    group = (pod.namespace, pod.group)
    return bool(pod.group) and any((user.namespace, user.group) == group for user in victim.users)


def _goes_before(pod: PodView, preemptor: Preemptor, world: WorldView) -> bool:
    """Whether a user is of the preemptor's queue, and has no lower priority."""
    return pod.priority >= preemptor.priority and world.facts.queue_of(pod) == preemptor.queue
