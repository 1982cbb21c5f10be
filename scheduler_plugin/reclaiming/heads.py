"""Heads: a pod that waits for guaranteed quota, alone or with its gang."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import Case
from scheduler_plugin.objects.amounts import Charges, ResourceKey, summed
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.equivalent_heads import kind_of
from scheduler_plugin.reclaiming.expected_charges import (
    NoCandidates,
    gang_of,
    holds_of,
    names_of,
    served_with_another,
    tried_cases,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Pods that wait and are admitted together or not at all.

    Attributes:
        pods: The pod and its gang.
        holds: What is to be held for each pod that is charged.
        cases: The case of each pod, with the pods before it bound.
        lacks_room: Whether they lack room below a limit, and not only a device.
        kind: Equal for heads that the same targets serve; None for a head like no other.
    """

    pods: tuple[PodView, ...]
    holds: tuple[Hold, ...]
    cases: tuple[Case, ...]
    lacks_room: bool
    kind: Hashable

    @property
    def queue(self) -> QueueName:
        """The queue to charge."""
        return self.holds[0].queue

    @property
    def adds(self) -> Charges:
        """The amounts to charge."""
        return summed(hold.usage for hold in self.holds)

    @property
    def priority(self) -> int:
        """The lowest priority of the pods: none of them is admitted without the others."""
        return min(pod.priority for pod in self.pods)

    @property
    def uids(self) -> frozenset[PodUid]:
        return frozenset(pod.uid for pod in self.pods)

    def counted(self, place: QueueName, key: ResourceKey) -> int:
        """What a queue is already charged for these pods; the judgement does not count it."""
        return sum(case.counted_usage.amount(place, key) for case in self.cases)

    def __str__(self) -> str:
        return names_of(self.pods)


def head_of(pod: PodView, world: WorldView, served: Collection[PodUid] = ()) -> Head | NoCandidates:
    """The head of a waiting pod and its gang; or why nothing is evicted for them.

    `served` is as for `gang_of`.
    """
    pods = gang_of(pod, world, served)
    if isinstance(pods, NoCandidates):
        return pods
    cases = tried_cases(pods, world)
    if isinstance(cases, NoCandidates):
        return cases
    if why := served_with_another(pods, world):
        return NoCandidates(why)
    holds = holds_of([case for case, _ in cases])
    if not holds:
        return NoCandidates(
            f"{names_of(pods)} would be charged to several queues; one is supported."
        )
    return Head(
        pods=tuple(pods),
        holds=holds,
        cases=tuple(case for case, _ in cases),
        lacks_room=any(lacks for _, lacks in cases),
        kind=kind_of(pod, world),
    )
