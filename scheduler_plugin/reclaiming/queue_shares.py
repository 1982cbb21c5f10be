"""The usage of each queue and its guaranteed share, during one cycle.

What the cycle takes from a queue, or gives to one, counts at once. Shares do not change by that:
they follow from the usage and requests of all queues, and an evicted pod requests the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from scheduler_plugin.accounting.figures.fair_shares import guaranteed_shares
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.measures import is_class
from scheduler_plugin.objects.names import DEFAULT_PRIORITY, QueueName
from scheduler_plugin.objects.steps import Steps, run_to_end
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.victims.effects import released_by, used_by_stuck
from scheduler_plugin.reclaiming.victims.victims import ExcludedPods

ListedPath: TypeAlias = tuple[tuple[QueueName, int], ...]
"""Queues, each with its priority."""


class QueueShares:
    """The queues of one cycle. It may see changes of the world late."""

    def __init__(self, world: WorldView, excluded: ExcludedPods) -> None:
        self.world = self._world = world
        self._tree = world.facts.tree
        self._taken = Totals(self._tree.path)
        self._shares: dict[ResourceKey, Mapping[QueueName, int]] = {}
        self._above: dict[tuple[QueueName, ResourceKey], int] = {}
        self._owners: dict[ResourceKey, Sequence[tuple[QueueName, tuple[QueueName, ...]]]] = {}
        self._listed_paths: dict[tuple[QueueName, ResourceKey], ListedPath] = {}
        for owner, what in released_by(excluded.evicted, (), world, excluded.stuck):
            self.take(owner, what)
        for owner, what in used_by_stuck(excluded.stuck, world):
            self.take(owner, what, -1)

    def take(self, owner: QueueName, what: Charges, sign: int = 1) -> None:
        """A target of this queue releases these amounts; with `sign` -1 it is put back."""
        self._taken.add(owner, what, sign)
        for place in self._tree.path(owner):
            for key, _ in what:
                self._above.pop((place, key), None)

    def has(self, place: QueueName, key: ResourceKey) -> int:
        """The usage of a queue and the queues below it, without what is being released."""
        ledger = self._world.ledger
        stays = ledger.usage.amount(place, key) - ledger.terminating.amount(place, key)
        return stays - self._taken.amount(place, key)

    def assumed(self, place: QueueName, key: ResourceKey) -> int:
        """The assumed usage: decisions in flight, and those of this cycle."""
        return self._world.assumptions.usage.amount(place, key)

    def share(self, place: QueueName, key: ResourceKey) -> int:
        """The guaranteed part of a queue's share, see `guaranteed_shares`."""
        if key not in self._shares:
            self._shares[key] = run_to_end(self._look(key))
        return self._shares[key].get(place, 0)

    def prepare(self, keys: Iterable[ResourceKey]) -> Steps[None]:
        """Compute the shares of these resources in steps; there may be many queues."""
        for key in keys:
            if key not in self._shares:
                self._shares[key] = yield from self._look(key)

    def above_share(self, place: QueueName, key: ResourceKey) -> int:
        """The usage of a queue above its share, which other queues may take back."""
        found = self._above.get((place, key))
        if found is None:
            found = self._above[place, key] = self.has(place, key) - self.share(place, key)
        return found

    def owners(self, key: ResourceKey) -> Sequence[tuple[QueueName, tuple[QueueName, ...]]]:
        """The queues that have usage of their own of a resource, each with its path."""
        if key not in self._owners:
            owners = self._world.ledger.usage.own_of(key)
            self._owners[key] = [(owner, self._tree.path(owner)) for owner in owners]
        return self._owners[key]

    def listed_path(self, owner: QueueName, key: ResourceKey) -> ListedPath:
        """A queue and the queues above it that list a resource, from below."""
        if (owner, key) not in self._listed_paths:
            queues = ((place, self._tree.get(place)) for place in self._tree.path(owner))
            self._listed_paths[owner, key] = tuple(
                (place, queue.priority if queue is not None else DEFAULT_PRIORITY)
                for place, queue in queues
                if place == owner or self.lists(place, key)
            )
        return self._listed_paths[owner, key]

    def is_within(
        self,
        below: Sequence[QueueName],
        cost: Charges,
        key: ResourceKey,
        is_above: Callable[[QueueName, ResourceKey], bool],
    ) -> bool:
        """Whether usage is within a share in another resource than the lacking `key`.

        It counts where these queues do not list the key, which is a measure: they say in other
        resources what they are guaranteed of the same devices.

        Args:
            below: The queue with the usage, and its ancestors below the common one.
            cost: The usage.
            key: The lacking resource.
            is_above: Whether a queue is above its share of a resource.
        """
        if is_class(key) or any(self.lists(place, key) for place in below):
            return False
        return any(
            self.is_guaranteed(tuple(below), other)
            and any(self.lists(place, other) and not is_above(place, other) for place in below)
            for other, _ in cost
        )

    def _look(self, key: ResourceKey) -> Steps[Mapping[QueueName, int]]:
        ledger = self._world.ledger
        asked = dict(ledger.usage.own_of(key))
        for name, amount in ledger.terminating.own_of(key).items():
            asked[name] = asked.get(name, 0) - amount
        for name, amount in ledger.waiting.own_of(key).items():
            asked[name] = asked.get(name, 0) + amount
        return guaranteed_shares(
            self._tree, key, asked, lambda place: ledger.non_preemptible.amount(place, key)
        )

    # The preemptor.

    def lists(self, place: QueueName, key: ResourceKey) -> bool:
        """Whether a queue lists a resource; an ancestor that does not has no limit for it."""
        return self._tree.share(place, key) is not None

    def reach(self, head: Head) -> int:
        """The number of queues on its path, from its own up, whose shares have room for the head.

        Candidates may be in the queues below the next one on the path: with 0 only below its own
        queue, with the whole path in every queue.
        """
        queue = head.queue
        path = self._tree.path(queue)
        for number in range(1, len(path) + 1):
            tested = path[:number]
            if not all(
                self._allows(place, key, amount - head.counted(place, key), own=queue)
                for key, amount in head.adds
                if self.is_guaranteed(tested, key)
                for place in tested
            ):
                return number - 1
        return len(path)

    def is_below_quota(self, head: Head) -> bool:
        """Whether its own queue has a quota and stays within it with the head."""
        guaranteed = [k for k, _ in head.adds if self._tree.guaranteed(head.queue, k) != 0]
        return bool(guaranteed) and all(
            share.quota.allows(self._with(head, key))
            for key in guaranteed
            if (share := self._tree.share(head.queue, key)) is not None
        )

    def _with(self, head: Head, key: ResourceKey) -> int:
        queue = head.queue
        has = self.has(queue, key) + self.assumed(queue, key) - head.counted(queue, key)
        return has + head.adds[key]

    def is_guaranteed(self, places: tuple[QueueName, ...], key: ResourceKey) -> bool:
        """Whether any of these queues has a quota of the resource; else nothing is evicted."""
        return any(self._tree.guaranteed(place, key) != 0 for place in places)

    def _allows(self, place: QueueName, key: ResourceKey, more: int, *, own: QueueName) -> bool:
        # A measure is compared in the queues that list it; a class in the own queue, too.
        if not self.lists(place, key) and not (place == own and is_class(key)):
            return True
        return self.has(place, key) + self.assumed(place, key) + more <= self.share(place, key)
