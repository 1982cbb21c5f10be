"""Who waits for what its queue is guaranteed: the first of a line, alone or with its PodGroup."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import Case
from scheduler_plugin.objects.amounts import Charges, ResourceKey, summed
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.kinds import kind_of
from scheduler_plugin.reclaiming.wants import (
    Nobody,
    holds_of,
    names_of,
    served_with_another,
    together_with,
    tried_cases,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Pods that wait, and go at one time or not at all.

    Attributes:
        pods: Whose turn it is, and those that go with it.
        holds: What is to be held for each of those that pay.
        cases: Each of them as if those before it were bound.
        lacks_room: Whether a limit keeps them, and not a device.
        kind: Equal for heads that the same would serve; None for one like no other.
    """

    pods: tuple[PodView, ...]
    holds: tuple[Hold, ...]
    cases: tuple[Case, ...]
    lacks_room: bool
    kind: Hashable

    @property
    def queue(self) -> QueueName:
        """The queue that would be charged for all that they add."""
        return self.holds[0].queue

    @property
    def adds(self) -> Charges:
        """What it would be charged."""
        return summed(hold.usage for hold in self.holds)

    @property
    def priority(self) -> int:
        """None of them goes without the others: the least of them says what they may take."""
        return min(pod.priority for pod in self.pods)

    @property
    def uids(self) -> frozenset[PodUid]:
        return frozenset(pod.uid for pod in self.pods)

    def counted(self, place: QueueName, key: ResourceKey) -> int:
        """What is counted for these pods already: they are judged as if that were not there."""
        return sum(case.counted_usage.amount(place, key) for case in self.cases)

    def __str__(self) -> str:
        return names_of(self.pods)


def head_of(pod: PodView, world: WorldView, served: Collection[PodUid] = ()) -> Head | Nobody:
    """What a waiting pod, and those that go with it, would add; or why nothing goes for them.

    `served` as for `together_with`.
    """
    pods = together_with(pod, world, served)
    if isinstance(pods, Nobody):
        return pods
    cases = tried_cases(pods, world)
    if isinstance(cases, Nobody):
        return cases
    if why := served_with_another(pods, world):
        return Nobody(why)
    holds = holds_of([case for case, _ in cases])
    if not holds:
        return Nobody(f"{names_of(pods)} would be charged to several queues.")
    return Head(
        pods=tuple(pods),
        holds=holds,
        cases=tuple(case for case, _ in cases),
        lacks_room=any(lacks for _, lacks in cases),
        kind=kind_of(pod, world),
    )
