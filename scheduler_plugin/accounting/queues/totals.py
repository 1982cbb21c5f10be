"""Sums along the tree: what is charged to a queue is charged to every ancestor too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from scheduler_plugin.objects.amounts import Charges, ResourceKey, charges
from scheduler_plugin.objects.names import QueueName

Amounts = dict[ResourceKey, int]


class Totals:
    """Charges by queue. A charge costs the depth of its queue, however many queues there are.

    While paths change, what is charged below the change is lifted off the old paths and laid
    onto the new ones: `lift`, then the change, then `lay` with the same names.
    """

    def __init__(
        self,
        path: Callable[[QueueName], tuple[QueueName, ...]],
        touched: set[QueueName] | None = None,
    ) -> None:
        """The queues whose sums change are entered into `touched`, where it is given."""
        self._path = path
        self._touched = touched
        self._own: dict[QueueName, Amounts] = {}
        self._sums: dict[QueueName, Amounts] = {}

    def __contains__(self, queue: QueueName) -> bool:
        """Whether anything is charged to the queue or below it."""
        return queue in self._sums

    def add(self, queue: QueueName, amounts: Charges, sign: int = 1) -> None:
        """Charge the amounts, or release them with the sign -1."""
        if amounts.items:
            _add(self._own, queue, amounts, sign)
            self._spread(queue, amounts, sign)

    def _spread(self, queue: QueueName, amounts: Charges, sign: int) -> None:
        path = self._path(queue)
        for place in path:
            _add(self._sums, place, amounts, sign)
        if self._touched is not None:
            self._touched.update(path)

    def amount(self, queue: QueueName, key: ResourceKey) -> int:
        amounts = self._sums.get(queue)
        return amounts.get(key, 0) if amounts else 0

    def own(self, queue: QueueName, key: ResourceKey) -> int:
        """What is charged to the queue itself, its descendants' left out."""
        amounts = self._own.get(queue)
        return amounts.get(key, 0) if amounts else 0

    def own_of(self, key: ResourceKey) -> dict[QueueName, int]:
        """What is charged to each queue itself of one resource."""
        return {queue: found[key] for queue, found in self._own.items() if key in found}

    def of(self, queue: QueueName) -> Charges:
        return charges(self._sums.get(queue, {}))

    def by_queue(self) -> Mapping[QueueName, Charges]:
        """Every queue to which something is charged, in the order of the names."""
        return {queue: charges(self._sums[queue]) for queue in sorted(self._sums)}

    def lift(self, queues: Iterable[QueueName]) -> None:
        self._spread_all(queues, -1)

    def lay(self, queues: Iterable[QueueName]) -> None:
        self._spread_all(queues, 1)

    def _spread_all(self, queues: Iterable[QueueName], sign: int) -> None:
        for queue in queues:
            if queue in self._own:
                self._spread(queue, charges(self._own[queue]), sign)


def _add(table: dict[QueueName, Amounts], queue: QueueName, more: Charges, sign: int) -> None:
    amounts = table.setdefault(queue, {})
    for key, amount in more.items:
        left = amounts.get(key, 0) + sign * amount
        if left:
            amounts[key] = left
        else:
            del amounts[key]
    if not amounts:
        del table[queue]
