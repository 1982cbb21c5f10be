"""Whose queue goes next: at each level of the tree, the sibling that is furthest under its quota.

Siblings under their quota go first, the one that uses the smallest part of it before the others;
then those that are over it, the one with the least surplus first. What is charged to a queue
itself stands among its children as one without a quota. An unlimited quota is as large as the
next ceiling that there is: the queue's own limit, or a ceiling above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from scheduler_plugin.amounts import ResourceKey
from scheduler_plugin.names import QueueName
from scheduler_plugin.world import World

Standing: TypeAlias = tuple[bool, float]
"""Whether a queue is over its quota, and by how much; else the part of it that it uses."""

Precedence: TypeAlias = tuple[Standing, ...]
"""The standings of a queue and its ancestors, from the root: the smaller goes first."""

_NOTHING_ASKED: Precedence = ()


def precedence(queue: QueueName, keys: Iterable[ResourceKey], world: World) -> Precedence:
    """Where a queue's pods stand that ask for these resources; the scarcest of them counts.

    It only grows while more is charged or assumed. Pods that ask for nothing go before all.
    """
    asked = tuple(keys)
    if not asked:
        return _NOTHING_ASKED
    tree = world.facts.tree
    levels = [
        max(_standing(place, key, world) for key in asked) for place in reversed(tree.path(queue))
    ]
    if tree.is_parent(queue):
        levels.append(max((True, float(_own(queue, key, world))) for key in asked))
    return tuple(levels)


def _standing(place: QueueName, key: ResourceKey, world: World) -> Standing:
    used = world.ledger.usage.amount(place, key) + world.assumptions.usage.amount(place, key)
    quota = next(_guaranteed(place, key, world), None)
    if quota is None:
        return False, 0.0
    return (False, used / quota) if used < quota else (True, float(used - quota))


def _guaranteed(place: QueueName, key: ResourceKey, world: World) -> Iterator[int]:
    """The quota; of one without an end, the ceilings in the order in which they are met."""
    for _, share in world.facts.tree.checks(place, key):
        for ceiling in (share.quota, share.limit):
            if ceiling.most is not None:
                yield ceiling.most


def _own(queue: QueueName, key: ResourceKey, world: World) -> int:
    return world.ledger.usage.own(queue, key) + world.assumptions.usage.own(queue, key)
