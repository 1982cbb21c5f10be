"""Whose queue goes next: of siblings the one that is furthest below its share, at each level.

It is the order in which `shares` deals devices, one pod at a time:

    1  under their quota     the larger priority of the queue first, then the smaller part used
    2  quotas without an end the larger priority first, then the less used for its weight
    3  over their quota      the larger priority first, then the less surplus for its weight

What is charged to a queue itself stands among its children as one without a quota.
"""

from __future__ import annotations

from math import inf
from typing import TypeAlias

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import DEFAULT_PRIORITY, QueueName

Standing: TypeAlias = tuple[int, int]
"""Which of the three it is, and the priority, turned round: the smaller goes first."""

Rank: TypeAlias = tuple[int, int, float]
"""A standing, and how much of its part a queue has of that."""

_QUOTA, _ENDLESS_QUOTA, _REST = range(3)
_NOTHING_ASKED: Rank = (_QUOTA - 1, 0, 0.0)


def rank(place: QueueName, asked: Charges, world: WorldView) -> Rank:
    """How a queue stands towards pods that ask for this; the scarcest resource counts.

    The smaller goes first. It only grows while more is charged or assumed. Pods that ask for
    nothing go before all others.
    """
    return max((_rank(place, key, world) for key, _ in asked), default=_NOTHING_ASKED)


def own_rank(queue: QueueName, asked: Charges, world: WorldView) -> Rank:
    """The same of what is charged to a queue itself, beside its children."""
    own = ((_REST, -DEFAULT_PRIORITY, _dealt(_own(queue, key, world), 1)) for key, _ in asked)
    return max(own, default=_NOTHING_ASKED)


def _rank(place: QueueName, key: ResourceKey, world: WorldView) -> Rank:
    used = world.ledger.usage.amount(place, key) + world.assumptions.usage.amount(place, key)
    tree = world.facts.tree
    queue, quota = tree.get(place), tree.guaranteed(place, key)
    priority = -queue.priority if queue is not None else -DEFAULT_PRIORITY
    if quota is not None and used < quota:
        return _QUOTA, priority, used / quota
    share = queue.shares.get(key) if queue is not None else None
    weight = share.weight if share is not None else 1
    if quota is None:
        return _ENDLESS_QUOTA, priority, _dealt(used, max(1, weight))
    return _REST, priority, _dealt(used - quota, weight)


def _dealt(amount: int, weight: int) -> float:
    """Whose turn the next one is, by Webster's rule."""
    return (2 * amount + 1) / weight if weight else inf


def _own(queue: QueueName, key: ResourceKey, world: WorldView) -> int:
    return world.ledger.usage.own(queue, key) + world.assumptions.usage.own(queue, key)
