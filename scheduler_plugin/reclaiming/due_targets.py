"""Whether a decision is still valid when it is carried out.

Between decision and eviction there are calls to the API server, and the world changes. Checked
again is what could make an eviction wrong: the waiting pods, the targets, and their queues' usage.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.reclaiming.heads import Head, head_of
from scheduler_plugin.reclaiming.queue_shares import QueueShares
from scheduler_plugin.reclaiming.targets import Targets
from scheduler_plugin.reclaiming.victims.protections import protection
from scheduler_plugin.reclaiming.victims.victims import (
    ExcludedPods,
    Preemptor,
    Protection,
    Victim,
    charged_for,
    held_by_claim,
    held_by_pod,
    with_whole_gangs,
)


def is_due(
    targets: Targets,
    world: WorldView,
    now: datetime,
    excluded: ExcludedPods,
    queue_shares: QueueShares,
) -> bool:
    """Whether exactly these targets are still to be evicted, for the same pods.

    `queue_shares` is that of the cycle: shares follow from all requests, not from this decision.
    """
    waits = [world.facts.pod(hold.pod) for hold in targets.holds]
    if not all(pod is not None and pod.may_be_bound for pod in waits):
        return False
    head = head_of(targets.pod, world)
    if not isinstance(head, Head) or [*_charges(head.holds)] != [*_charges(targets.holds)]:
        return False
    preemptor = Preemptor(head.pods, head.queue, excluded)
    return all(
        _may_go(victim, preemptor, world, now) and _is_above(victim, head, world, queue_shares)
        for victim in targets.victims
    )


def _charges(holds: tuple[Hold, ...]) -> Iterator[tuple[PodUid, QueueName, Charges]]:
    return ((hold.pod, hold.queue, hold.usage) for hold in holds)


def _may_go(victim: Victim, preemptor: Preemptor, world: WorldView, now: datetime) -> bool:
    """Whether all of its users may be evicted, and it has no other user."""
    held = _held(victim, world)
    found = (
        held
        if isinstance(held, Protection)
        else with_whole_gangs(held, (), preemptor.excluded.evicted, world)
    )
    if isinstance(found, Protection) or found.pods - victim.pods:
        return False
    return protection(found, preemptor, world, now) in (None, Protection.UNUSED)


def _held(victim: Victim, world: WorldView) -> Victim | Protection:
    if victim.claim is not None:
        return held_by_claim(victim.claim.uid, world)
    return held_by_pod(victim.users[0].uid, world)


def _is_above(victim: Victim, head: Head, world: WorldView, queue_shares: QueueShares) -> bool:
    """Whether the queues of the victim that are not above the head's are above their shares."""
    path = world.facts.tree.path(head.queue)
    if victim.owner in path:
        return True
    usage, terminating = world.ledger.usage, world.ledger.terminating
    below = [p for p in world.facts.tree.path(victim.owner) if p not in path]
    cost = charged_for(victim, world)

    def is_above(place: QueueName, key: ResourceKey) -> bool:
        has = usage.amount(place, key) - terminating.amount(place, key)
        return has > queue_shares.share(place, key)

    return any(
        all(
            is_above(place, key)
            for place in below
            if place == victim.owner or queue_shares.lists(place, key)
        )
        and not queue_shares.is_within(below, cost, key, is_above)
        for key, _ in head.adds
    )
