"""The shares in `status.share` of Queues, from `fair_shares`, cached for some seconds.

A share depends on what all queues have and ask for, so computing it costs as much as all queues;
and under load every share changes all the time.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_plugin.accounting.books_views import BooksView
from scheduler_plugin.accounting.figures.fair_shares import fair_shares
from scheduler_plugin.objects.amounts import Charges, ResourceKey, charges
from scheduler_plugin.objects.names import QueueName

SECONDS = 5.0
"""How long shares are cached."""


class ShareFigures:
    """The cached shares of all queues. Moments are seconds of the monotonic clock."""

    def __init__(self, books: BooksView) -> None:
        self._books = books
        self._shares: dict[ResourceKey, Mapping[QueueName, int]] = {}
        self._until: dict[ResourceKey, float] = {}

    def of(self, name: QueueName, moment: float) -> Charges:
        """The queue's share of each resource that it has, asks for or lists."""
        ledger, queue = self._books.ledger, self._books.facts.tree.get(name)
        has = (*ledger.usage.of(name), *ledger.waiting.of(name))
        keys = {key for key, _ in has} | set(queue.shares if queue is not None else ())
        return charges({key: self._of(key, moment).get(name, 0) for key in keys})

    def _of(self, key: ResourceKey, moment: float) -> Mapping[QueueName, int]:
        if moment >= self._until.get(key, moment):
            self._shares[key] = self._look(key)
            self._until[key] = moment + SECONDS
        return self._shares[key]

    def _look(self, key: ResourceKey) -> Mapping[QueueName, int]:
        asked = self._books.ledger.usage.own_of(key)
        for name, amount in self._books.ledger.waiting.own_of(key).items():
            asked[name] = asked.get(name, 0) + amount
        # The number of devices is not known for certain: only limits end shares.
        return fair_shares(self._books.facts.tree, key, asked, None)
