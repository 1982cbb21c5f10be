"""Whether a decision is still valid when it is carried out.

Between decision and eviction there are calls to the API server, and the world changes. Checked
again is what could make an eviction wrong: the waiting pods, the targets, and their queues' usage.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.reclaiming.decisions import Take
from scheduler_plugin.reclaiming.heads import Head, head_of
from scheduler_plugin.reclaiming.standings import Standings
from scheduler_plugin.reclaiming.victims.protections import protection
from scheduler_plugin.reclaiming.victims.victims import (
    Asker,
    Away,
    Protection,
    Victim,
    held_by_claim,
    held_by_pod,
    whole,
)


def is_due(take: Take, world: WorldView, now: datetime, away: Away, standings: Standings) -> bool:
    """Whether exactly these targets are still to be evicted, for the same pods.

    `standings` is that of the cycle: shares follow from all requests, not from this decision.
    """
    waits = [world.facts.pod(hold.pod) for hold in take.holds]
    if not all(pod is not None and pod.may_be_bound for pod in waits):
        return False
    head = head_of(take.pod, world)
    if not isinstance(head, Head) or [*_charges(head.holds)] != [*_charges(take.holds)]:
        return False
    asker = Asker(head.pods, head.queue, away)
    return all(
        _may_go(victim, asker, world, now) and _is_above(victim, head, world, standings)
        for victim in take.victims
    )


def _charges(holds: tuple[Hold, ...]) -> Iterator[tuple[PodUid, QueueName, Charges]]:
    return ((hold.pod, hold.queue, hold.usage) for hold in holds)


def _may_go(victim: Victim, asker: Asker, world: WorldView, now: datetime) -> bool:
    """Whether all of its users may be evicted, and it has no other user."""
    held = _held(victim, world)
    found = held if isinstance(held, Protection) else whole(held, (), asker.away.evicted, world)
    if isinstance(found, Protection) or found.pods - victim.pods:
        return False
    return protection(found, asker, world, now) in (None, Protection.UNUSED)


def _held(victim: Victim, world: WorldView) -> Victim | Protection:
    if victim.claim is not None:
        return held_by_claim(victim.claim.uid, world)
    return held_by_pod(victim.users[0].uid, world)


def _is_above(victim: Victim, head: Head, world: WorldView, standings: Standings) -> bool:
    """Whether the queues of the victim that are not above the head's are above their shares."""
    path = world.facts.tree.path(head.queue)
    if victim.owner in path:
        return True
    usage, leaving = world.ledger.usage, world.ledger.leaving
    below = [p for p in world.facts.tree.path(victim.owner) if p not in path]
    return any(
        all(
            usage.amount(place, key) - leaving.amount(place, key) > standings.share(place, key)
            for place in below
            if place == victim.owner or standings.lists(place, key)
        )
        for key, _ in head.adds
    )
