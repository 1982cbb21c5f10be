"""The search for targets for one head: the targets chosen so far, and what each releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.victims.victims import Victim


@dataclass(frozen=True, slots=True)
class ChosenVictim:
    """A chosen target.

    Attributes:
        victim: The target.
        pods: Its pods that were not gone before.
        freed: What it releases, by queue.
    """

    victim: Victim
    pods: tuple[PodUid, ...]
    freed: tuple[tuple[QueueName, Charges], ...]


@dataclass(slots=True)
class TargetSearch:
    """A head, and the targets chosen for it so far.

    Attributes:
        path: Returns a queue and the queues above it.
        reach: See `QueueShares.reach`.
        guaranteed: The resources of which the queues up to `reach` have a quota.
        taken: The chosen targets, in order.
    """

    head: Head
    path: Callable[[QueueName], tuple[QueueName, ...]]
    reach: int
    guaranteed: frozenset[ResourceKey]
    taken: list[ChosenVictim] = field(default_factory=list)

    @property
    def victims(self) -> tuple[Victim, ...]:
        return tuple(each.victim for each in self.taken)

    @property
    def to_evict(self) -> frozenset[PodUid]:
        """The pods of the targets that are not terminating already."""
        users = (pod for each in self.taken for pod in each.victim.users)
        return frozenset(pod.uid for pod in users if not pod.deleting)

    def is_guaranteed(self, key: ResourceKey) -> bool:
        return key in self.guaranteed

    def left_by_others(self, place: QueueName, key: ResourceKey) -> int:
        """The amount that targets below `place` release, without those below the head's queue."""
        return sum(
            amounts[key]
            for taken in self.taken
            if self.head.queue not in self.path(taken.victim.owner)
            for owner, amounts in taken.freed
            if place in self.path(owner)
        )
