"""What `status.share` of Queues says: the fair shares, looked at now and then.

A share follows from what all queues have and ask for, so that to look costs all of them; and while
pods come and go every share changes all the time. So they are as old as a few seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_plugin.accounting.figures.shares import fair_shares
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import Charges, ResourceKey, charges
from scheduler_plugin.objects.names import QueueName

SECONDS = 5.0
"""How long shares are believed."""


class ShareFigures:
    """The shares of all queues, by resource. Moments are seconds of the monotonic clock."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._shares: dict[ResourceKey, Mapping[QueueName, int]] = {}
        self._until: dict[ResourceKey, float] = {}

    def of(self, name: QueueName, moment: float) -> Charges:
        """What a queue would have of each resource that it has, asks for or lists."""
        ledger, queue = self._world.ledger, self._world.facts.tree.get(name)
        has = (*ledger.usage.of(name), *ledger.waiting.of(name))
        keys = {key for key, _ in has} | set(queue.shares if queue is not None else ())
        return charges({key: self._of(key, moment).get(name, 0) for key in keys})

    def _of(self, key: ResourceKey, moment: float) -> Mapping[QueueName, int]:
        if moment >= self._until.get(key, moment):
            self._shares[key] = self._look(key)
            self._until[key] = moment + SECONDS
        return self._shares[key]

    def _look(self, key: ResourceKey) -> Mapping[QueueName, int]:
        asked = self._world.ledger.usage.own_of(key)
        for name, amount in self._world.ledger.waiting.own_of(key).items():
            asked[name] = asked.get(name, 0) + amount
        # How many devices there are nobody knows for sure: what ends shares are limits.
        return fair_shares(self._world.facts.tree, key, asked, None)
