"""Limits and quotas: what a pod would add, compared with the ceilings of all charged queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kube.words import some_of
from scheduler_plugin.accounting.queues.totals import Totals, TotalsView
from scheduler_plugin.judging.cases import Case, ClaimUse
from scheduler_plugin.objects.amounts import Ceiling, Charges, ResourceKey
from scheduler_plugin.objects.measures import amount_text, ceiling_text, is_class
from scheduler_plugin.objects.names import QueueName, Share

DEVICES_NAMED = 3
"""The maximum number of devices that a sentence names."""

Addition = tuple[str, QueueName, Charges]
"""A claim or the pod, the queue that is charged, and what is added to it."""


@dataclass(frozen=True, slots=True)
class Overrun:
    """A ceiling that the pod would exceed.

    Attributes:
        what: The claim or pod that exceeds it.
        owner: The queue that is charged.
        place: The queue with the ceiling: the owner or an ancestor.
    """

    what: str
    owner: QueueName
    place: QueueName
    key: ResourceKey
    used: int
    more: int

    def __str__(self) -> str:
        queue = f'queue "{self.place}"'
        if self.place != self.owner:
            queue += f', which is above queue "{self.owner}",'
        used, more = self.text(self.used), self.text(self.more)
        return f"{self.what} does not fit: {queue} uses {used} {self.key}, {more} more"

    def text(self, amount: int | Ceiling) -> str:
        """An amount or a ceiling of its resource: devices, or a quantity."""
        if isinstance(amount, Ceiling):
            return ceiling_text(self.key, amount)
        return amount_text(self.key, amount)


def overruns(
    case: Case,
    additions: Iterable[Addition],
    sums: tuple[TotalsView, TotalsView, TotalsView],
    ceiling: Callable[[Share], Ceiling],
) -> Iterator[tuple[Overrun, Share]]:
    """Ceilings that are exceeded; `sums` are charged, assumed, and counted for this pod already."""
    tree = case.world.facts.tree
    charged, assumed, counted = sums
    added = Totals(tree.path)
    for what, owner, adds in additions:
        added.add(owner, adds)
        for key, _ in adds:
            for place, share in tree.checks(owner, key):
                used = charged.amount(place, key) + assumed.amount(place, key)
                used -= counted.amount(place, key)
                more = added.amount(place, key)
                if not ceiling(share).allows(used + more):
                    yield Overrun(what, owner, place, key, used, more), share


def limit_overruns(case: Case) -> Iterator[tuple[Overrun, Share]]:
    """Limits (or quotas of queues with a weight of 0) that the usage would exceed."""
    world = case.world
    sums = (world.ledger.usage, world.assumptions.usage, case.counted_usage)
    return overruns(case, usage_added(case), sums, lambda share: share.most)


def quota_overruns(case: Case) -> Iterator[tuple[Overrun, Share]]:
    """Quotas that the usage would exceed, so that the pod borrows."""
    world = case.world
    sums = (world.ledger.usage, world.assumptions.usage, case.counted_usage)
    return overruns(case, usage_added(case), sums, lambda share: share.quota)


def non_preemptible_overruns(case: Case) -> Iterator[tuple[Overrun, Share]]:
    """Quotas that non-preemptible use would exceed."""
    assumed = case.world.assumptions.non_preemptible
    sums = (case.world.ledger.non_preemptible, assumed, case.counted_non_preemptible)
    return overruns(case, non_preemptible_added(case), sums, lambda share: share.quota)


def worst(found: Iterable[tuple[Overrun, Share]]) -> Iterable[tuple[Overrun, Share]]:
    """The last overrun of each ceiling, which includes all that the pod adds."""
    return {(overrun.place, overrun.key): (overrun, share) for overrun, share in found}.values()


def usage_added(case: Case) -> Iterator[Addition]:
    for use in case.claims:
        yield _what(use), use.owner, use.adds
    yield str(case.pod), case.queue, case.requests


def non_preemptible_added(case: Case) -> Iterator[Addition]:
    for use in case.claims:
        yield _what(use), use.owner, use.adds_non_preemptible
    if case.pod.non_preemptible:
        yield str(case.pod), case.queue, case.requests


def _what(use: ClaimUse) -> str:
    """The claim, with its devices where other devices would have cost another amount."""
    claim = use.claim
    has_choice = any(len(request.alternatives) > 1 for request in claim.requests)
    is_measured = any(not is_class(key) for key, _ in use.cost)
    if not claim.devices or not (has_choice or is_measured):
        return str(claim)
    return f"{claim} with {some_of(map(str, claim.devices), DEVICES_NAMED)}"


def added_at(
    case: Case, additions: Iterable[Addition]
) -> Iterator[tuple[QueueName, ResourceKey, int]]:
    """What would be added to each queue, ancestors included."""
    found: dict[tuple[QueueName, ResourceKey], int] = {}
    for _, owner, adds in additions:
        for key, amount in adds:
            for place in case.world.facts.tree.path(owner):
                found[place, key] = found.get((place, key), 0) + amount
    for (place, key), amount in found.items():
        yield place, key, amount
