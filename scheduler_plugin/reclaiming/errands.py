"""One head while it is served: who was chosen for it until now, and what ends with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.victims.victims import Victim


@dataclass(frozen=True, slots=True)
class Taken:
    """Who goes, with those that were not gone before, and what ends with them."""

    victim: Victim
    pods: tuple[PodUid, ...]
    freed: tuple[tuple[QueueName, Charges], ...]


@dataclass(slots=True)
class Errand:
    """One head, and who was chosen for it until now.

    Attributes:
        path: Of a queue, it and those above it.
        reach: See `Standings.reach`.
        guaranteed: The keys of which the queues so far have a quota.
    """

    head: Head
    path: Callable[[QueueName], tuple[QueueName, ...]]
    reach: int
    guaranteed: frozenset[ResourceKey]
    taken: list[Taken] = field(default_factory=list)

    @property
    def victims(self) -> tuple[Victim, ...]:
        return tuple(each.victim for each in self.taken)

    @property
    def to_evict(self) -> frozenset[PodUid]:
        """Those of them that are not on their way out already."""
        users = (pod for each in self.taken for pod in each.victim.users)
        return frozenset(pod.uid for pod in users if not pod.deleting)

    def is_guaranteed(self, key: ResourceKey) -> bool:
        return key in self.guaranteed

    def left_by_others(self, place: QueueName, key: ResourceKey) -> int:
        """What those below a queue leave of a key who are not below the head's own."""
        return sum(
            amounts[key]
            for taken in self.taken
            if self.head.queue not in self.path(taken.victim.owner)
            for owner, amounts in taken.freed
            if place in self.path(owner)
        )
