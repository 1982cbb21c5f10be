"""The order of sibling queues: the queue farthest below its share first, at each level.

It is the order in which `shares` divides devices, one pod at a time:

    1  below quota      higher queue priority first, then the smaller used part of the quota
    2  unlimited quota  higher priority first, then the smaller usage per weight
    3  above quota      higher priority first, then the smaller usage above quota per weight

The usage of a queue itself is ordered among its children, like a child without a quota. Of several
resources the parts of the largest quota or limit are compared (`QueueTree.scale`), since devices
and amounts of a measure are no common unit. Quotients are rounded: amounts that differ by less
than one part in 10^15 may count as equal, and never in the wrong order.
"""

from __future__ import annotations

from math import inf
from typing import TypeAlias

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import DEFAULT_PRIORITY, QueueName

Rank: TypeAlias = tuple[int, int, float]
"""The tier of the three, the negative priority, and the used part: the smaller goes first."""

_BELOW_QUOTA, _UNLIMITED_QUOTA, _ABOVE_QUOTA = range(3)
_NOTHING_ASKED: Rank = (_BELOW_QUOTA - 1, 0, 0.0)


def rank(place: QueueName, asked: Charges, world: WorldView) -> Rank:
    """The rank of a queue for pods with these requests; the scarcest resource counts.

    The smaller goes first. It only grows while more is charged or assumed. Pods that request
    nothing go before all others.
    """
    return max((_rank(place, key, world) for key, _ in asked), default=_NOTHING_ASKED)


def own_rank(queue: QueueName, asked: Charges, world: WorldView) -> Rank:
    """The same for the usage of a queue itself, among its children."""
    scale = world.facts.tree.scale
    own = (
        (_ABOVE_QUOTA, -DEFAULT_PRIORITY, _dealt(_own(queue, key, world), scale(key)))
        for key, _ in asked
    )
    return max(own, default=_NOTHING_ASKED)


def _rank(place: QueueName, key: ResourceKey, world: WorldView) -> Rank:
    used = world.ledger.usage.amount(place, key) + world.assumptions.usage.amount(place, key)
    tree = world.facts.tree
    queue, quota = tree.get(place), tree.guaranteed(place, key)
    priority = -queue.priority if queue is not None else -DEFAULT_PRIORITY
    if quota is not None and used < quota:
        return _BELOW_QUOTA, priority, used / quota
    share = queue.shares.get(key) if queue is not None else None
    weight = share.weight if share is not None else 1
    if quota is None:
        return _UNLIMITED_QUOTA, priority, _dealt(used, max(1, weight) * tree.scale(key))
    return _ABOVE_QUOTA, priority, _dealt(used - quota, weight * tree.scale(key))


def _dealt(amount: int, weight: int) -> float:
    """The quotient of Webster's method: the smaller gets the next one."""
    return (2 * amount + 1) / weight if weight else inf


def _own(queue: QueueName, key: ResourceKey, world: WorldView) -> int:
    return world.ledger.usage.own(queue, key) + world.assumptions.usage.own(queue, key)
