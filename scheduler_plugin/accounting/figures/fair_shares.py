"""The fair share of each queue: what it would have if all devices were divided again, by level.

What a queue has is divided among its children and its own pods, which count as one more child
without a quota. The order is:

    1  quotas                    in proportion to their size, if they are more than there is
    2  unlimited quotas          by weight, if no ceiling above limits them
    3  the rest                  by weight; a queue with a weight of 0 gets none

Within each of the three the larger `priority` is served first, and no queue gets more than it and
its descendants ask for, nor more than its limit. A queue that does not list a resource has the sum
of its children's quotas, and no limit.

Reclaim depends on the *guaranteed* part of the share: the first two, preceded by what cannot be
taken from the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise

from scheduler_plugin.accounting.figures.apportionment import Claimant, divided
from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import DEFAULT_PRIORITY, NO_QUEUE, QueueName, Share
from scheduler_plugin.objects.steps import STRIDE, Steps, run_to_end

_FIXED, _QUOTA, _UNLIMITED_QUOTA, _REST = range(4)
_TOP = NO_QUEUE
_UNLISTED = Share()


def fair_shares(
    tree: QueueTree, key: ResourceKey, asked: Mapping[QueueName, int], total: int | None
) -> dict[QueueName, int]:
    """The share of each queue that has or asks for devices, and of its ancestors.

    Args:
        tree: All queues.
        key: The resource.
        asked: What each queue's own pods have and ask for together, without its descendants.
        total: The number of devices; None if it is unknown, so that only limits count.
    """
    level = run_to_end(_levels(tree, key, asked))
    return run_to_end(_divided(level, level.claimants, total))


def guaranteed_shares(
    tree: QueueTree,
    key: ResourceKey,
    asked: Mapping[QueueName, int],
    fixed: Callable[[QueueName], int],
) -> Steps[dict[QueueName, int]]:
    """The guaranteed part of each queue's share, whichever pods run now.

    Each level divides what a queue has among its children: first what cannot be taken from them,
    then quotas, as far as they are asked for. A queue whose own quota is 0 is guaranteed nothing
    beside its siblings; to its children it passes all that its limit allows, since their quotas
    would have no effect otherwise. The generator yields after a number of queues.

    Args:
        tree: All queues.
        key: The resource.
        asked: What each queue's own pods have and ask for together, without its descendants.
        fixed: What a queue and its descendants have that may not be taken.
    """
    level = yield from _levels(tree, key, asked)
    claimants = partial(level.guaranteed, fixed=fixed)
    return (yield from _divided(level, claimants, None, level.to_divide))


def _divided(
    level: _Levels,
    claimants: Callable[[QueueName], Iterable[Claimant]],
    total: int | None,
    to_divide: Callable[[QueueName, int], int] = lambda _, share: share,
) -> Steps[dict[QueueName, int]]:
    given: dict[QueueName, int] = {}
    shares: dict[QueueName, int | None] = {_TOP: total}
    for place, children in level.children.items():
        yield
        found = divided(shares[place], claimants(place))
        for child in children:
            given[child] = found.get(child, 0)
            shares[child] = to_divide(child, given[child])
    return given


def _levels(tree: QueueTree, key: ResourceKey, asked: Mapping[QueueName, int]) -> Steps[_Levels]:
    own = {name: amount for name, amount in asked.items() if amount > 0}
    level = _Levels(tree, key, own, (yield from _by_level(tree, own)))
    for number, place in enumerate(reversed([*_below(level.children)])):
        level.look_at(place)
        if number % STRIDE == STRIDE - 1:
            yield
    return level


class _Levels:
    """The queues that have or ask for devices, and their ancestors.

    Attributes:
        children: The children of each queue, upper levels first.
    """

    def __init__(
        self,
        tree: QueueTree,
        key: ResourceKey,
        own: Mapping[QueueName, int],
        children: Mapping[QueueName, list[QueueName]],
    ) -> None:
        self.children = children
        self._tree = tree
        self._key = key
        self._own = own
        self._wants: dict[QueueName, int] = {}
        self._shares: dict[QueueName, Share | None] = {}
        self._quotas: dict[QueueName, int | None] = {}

    def look_at(self, place: QueueName) -> None:
        """Compute what a queue wants, after its children."""
        children = self.children.get(place, ())
        share = self._shares[place] = self._tree.share(place, self._key)
        self._quotas[place] = self._tree.guaranteed(place, self._key)
        wants = self._own.get(place, 0) + sum(self._wants[child] for child in children)
        most = (share or _UNLISTED).most.most
        self._wants[place] = wants if most is None else min(wants, most)

    def claimants(self, place: QueueName) -> Iterator[Claimant]:
        for child in self.children[place]:
            yield from self._claimants(child)
        if own := self._own.get(place, 0):
            yield Claimant((_REST, -DEFAULT_PRIORITY), 1, own, _TOP)

    def _claimants(self, child: QueueName) -> Iterator[Claimant]:
        """A queue as two claimants: for its quota, and for what is beyond it."""
        queue, share = self._tree.get(child), self._shares[child] or _UNLISTED
        priority = -(queue.priority if queue else DEFAULT_PRIORITY)
        wants, quota = self._wants[child], self._quotas[child]
        if quota is None:
            yield Claimant((_UNLIMITED_QUOTA, priority), max(1, share.weight), wants, child)
            return
        guaranteed = min(quota, wants)
        if guaranteed:
            yield Claimant((_QUOTA, priority), quota, guaranteed, child)
        # A weight of 0 does not limit an unlimited quota, since nothing is beyond it.
        if wants > guaranteed and (share.weight or share.quota.most is None):
            yield Claimant((_REST, priority), max(1, share.weight), wants - guaranteed, child)

    def to_divide(self, place: QueueName, share: int) -> int:
        """What a queue divides among its children, given its own guaranteed share."""
        return share if self._quotas[place] != 0 else self._wants[place]

    def guaranteed(self, place: QueueName, fixed: Callable[[QueueName], int]) -> Iterator[Claimant]:
        """The children of a queue as claimants: for what may not be taken, and for their quotas."""
        for child in self.children[place]:
            queue, share = self._tree.get(child), self._shares[child] or _UNLISTED
            priority = -(queue.priority if queue else DEFAULT_PRIORITY)
            wants, quota = self._wants[child], self._quotas[child]
            kept = min(fixed(child), wants)
            if kept:
                yield Claimant((_FIXED, 0), kept, kept, child)
            more = (wants if quota is None else min(quota, wants)) - kept
            if more > 0:
                band = _UNLIMITED_QUOTA if quota is None else _QUOTA
                yield Claimant((band, priority), quota or max(1, share.weight), more, child)


def _by_level(
    tree: QueueTree, names: Iterable[QueueName]
) -> Steps[dict[QueueName, list[QueueName]]]:
    """Children by parent. A cycle is cut where the first path into it ends."""
    above: dict[QueueName, QueueName] = {}
    for number, name in enumerate(sorted(names), start=1):
        for child, parent in pairwise((*tree.path(name), _TOP)):
            if child in above:
                break
            above[child] = parent
        if not number % STRIDE:
            yield
    below: dict[QueueName, list[QueueName]] = {}
    for child in sorted(above):
        below.setdefault(above[child], []).append(child)
    levels = {_TOP: below.get(_TOP, [])}
    return levels | {place: below[place] for place in _below(below) if place in below}


def _below(children: Mapping[QueueName, Iterable[QueueName]]) -> Iterator[QueueName]:
    """All queues below the top, parents before children."""
    todo = list(children.get(_TOP, ()))
    while todo:
        place = todo.pop()
        yield place
        todo += children.get(place, ())
