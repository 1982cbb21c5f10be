"""Sums along the tree: what is charged to a queue is charged to all its ancestors, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler_plugin.objects.amounts import Charges, ResourceKey, charges, summed
from scheduler_plugin.objects.names import QueueName

Amounts = dict[ResourceKey, int]


class TotalsView:
    """Charges by queue: the read-only view."""

    def __init__(self, path: Callable[[QueueName], tuple[QueueName, ...]]) -> None:
        self._path = path
        self._own: dict[QueueName, Amounts] = {}
        self._sums: dict[QueueName, Amounts] = {}

    def __contains__(self, queue: QueueName) -> bool:
        """Whether anything is charged to the queue or its descendants."""
        return queue in self._sums

    def amount(self, queue: QueueName, key: ResourceKey) -> int:
        amounts = self._sums.get(queue)
        return amounts.get(key, 0) if amounts else 0

    def own(self, queue: QueueName, key: ResourceKey) -> int:
        """What is charged to the queue itself, without its descendants."""
        amounts = self._own.get(queue)
        return amounts.get(key, 0) if amounts else 0

    def own_of(self, key: ResourceKey) -> dict[QueueName, int]:
        """What is charged to each queue itself, without its descendants, of one resource."""
        return {queue: found[key] for queue, found in self._own.items() if key in found}

    def of(self, queue: QueueName) -> Charges:
        return charges(self._sums.get(queue, {}))

    def by_queue(self) -> Mapping[QueueName, Charges]:
        """The charges of each queue that has any, in the order of the names."""
        return {queue: charges(self._sums[queue]) for queue in sorted(self._sums)}


class Totals(TotalsView):
    """Sums with their changes. The cost of a charge is the depth of its queue.

    After paths changed, `follow` moves the charges from the old paths to the current ones. Until
    then they count on the old paths.
    """

    def __init__(
        self,
        path: Callable[[QueueName], tuple[QueueName, ...]],
        touched: set[QueueName] | None = None,
    ) -> None:
        """Queues whose sums change are added to `touched`, if it is given."""
        super().__init__(path)
        self._touched = touched

    def add(self, queue: QueueName, amounts: Charges, sign: int = 1) -> None:
        """Charge the amounts; with a sign of -1, release them."""
        if amounts.items:
            path = self._path(queue)
            _add(self._own, queue, amounts, sign)
            self._add_along(path, amounts, sign)

    def _add_along(self, path: tuple[QueueName, ...], amounts: Charges, sign: int) -> None:
        for place in path:
            _add(self._sums, place, amounts, sign)
        if self._touched is not None:
            self._touched.update(path)

    def follow(self, paths: Mapping[QueueName, tuple[QueueName, ...]]) -> None:
        """Move the sums of these queues from their old paths, the values, to their current ones."""
        for queue, before in paths.items():
            own, now = self._own.get(queue), self._path(queue)
            if own and now != before:
                self._add_along(now, charges(own), 1)
                self._add_along(before, charges(own), -1)

    def trial(self) -> Totals:
        """An overlay of these sums."""
        return _TriedTotals(self, self._path)


class _TriedTotals(Totals):
    """Changes over other sums; reads return both together."""

    def __init__(self, under: Totals, path: Callable[[QueueName], tuple[QueueName, ...]]) -> None:
        super().__init__(path)
        self._under = under

    def __contains__(self, queue: QueueName) -> bool:
        return bool(self.of(queue))

    def amount(self, queue: QueueName, key: ResourceKey) -> int:
        return self._under.amount(queue, key) + super().amount(queue, key)

    def own(self, queue: QueueName, key: ResourceKey) -> int:
        return self._under.own(queue, key) + super().own(queue, key)

    def own_of(self, key: ResourceKey) -> dict[QueueName, int]:
        queues = {**self._under.own_of(key), **super().own_of(key)}
        return {queue: own for queue in queues if (own := self.own(queue, key))}

    def of(self, queue: QueueName) -> Charges:
        return summed((self._under.of(queue), super().of(queue)))

    def by_queue(self) -> Mapping[QueueName, Charges]:
        queues = sorted({*self._under.by_queue(), *super().by_queue()})
        return {queue: found for queue in queues if (found := self.of(queue))}

    def follow(self, paths: Mapping[QueueName, tuple[QueueName, ...]]) -> None:
        raise NotImplementedError("a trial ends before the tree changes")


def _add(table: dict[QueueName, Amounts], queue: QueueName, more: Charges, sign: int) -> None:
    amounts = table.setdefault(queue, {})
    for key, amount in more.items:
        remaining = amounts.get(key, 0) + sign * amount
        if remaining:
            amounts[key] = remaining
        else:
            del amounts[key]
    if not amounts:
        del table[queue]
