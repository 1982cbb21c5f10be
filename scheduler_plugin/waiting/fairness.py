"""Whose queue goes next: at each level of the tree, the sibling that is furthest under its quota.

Siblings under their quota go first, the one that uses the smallest part of it before the others;
then those that are over it, the one with the least surplus first. What is charged to a queue
itself stands among its children as one without a quota. An unlimited quota is as large as the
next ceiling that there is: the queue's own limit, or a ceiling above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import QueueName

Rank: TypeAlias = tuple[bool, float]
"""Whether a queue is over its quota, and by how much; else the part of it that it uses."""

_NOTHING_ASKED: Rank = (False, -1.0)


def rank(place: QueueName, asked: Charges, world: World) -> Rank:
    """How a queue stands towards pods that ask for this; the scarcest resource counts.

    The smaller goes first. It only grows while more is charged or assumed. Pods that ask for
    nothing go before all others.
    """
    return max((_rank(place, key, world) for key, _ in asked), default=_NOTHING_ASKED)


def own_rank(queue: QueueName, asked: Charges, world: World) -> Rank:
    """The same of what is charged to a queue itself, beside its children."""
    own = ((True, float(_own(queue, key, world))) for key, _ in asked)
    return max(own, default=_NOTHING_ASKED)


def _rank(place: QueueName, key: ResourceKey, world: World) -> Rank:
    used = world.ledger.usage.amount(place, key) + world.assumptions.usage.amount(place, key)
    quota = next(_guaranteed(place, key, world), None)
    if quota is None:
        return False, 0.0
    return (False, used / quota) if used < quota else (True, float(used - quota))


def _guaranteed(place: QueueName, key: ResourceKey, world: World) -> Iterator[int]:
    """The quota; of one without an end, the ceilings in the order in which they are met."""
    for _, share in world.facts.tree.checks(place, key):
        for ceiling in (share.quota, share.most):
            if ceiling.most is not None:
                yield ceiling.most


def _own(queue: QueueName, key: ResourceKey, world: World) -> int:
    return world.ledger.usage.own(queue, key) + world.assumptions.usage.own(queue, key)
