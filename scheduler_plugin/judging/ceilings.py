"""Limits and quotas: what a pod would add, held against every queue that would be charged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from scheduler_plugin.accounting.queues.totals import Totals, TotalsView
from scheduler_plugin.judging.cases import Case
from scheduler_plugin.objects.amounts import Ceiling, Charges, ResourceKey
from scheduler_plugin.objects.names import QueueName, Share

Addition = tuple[str, QueueName, Charges]
"""What a claim, or the pod's own requests, add to which queue."""


@dataclass(frozen=True, slots=True)
class Overrun:
    """A ceiling that the pod would pass: where, and by which claim or request."""

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
        return f"{self.what} does not fit: {queue} uses {self.used} {self.key}, {self.more} more"


def overruns(
    case: Case,
    additions: Iterable[Addition],
    sums: tuple[TotalsView, TotalsView, TotalsView],
    ceiling: Callable[[Share], Ceiling],
) -> Iterator[tuple[Overrun, Share]]:
    """Ceilings that are passed; `sums` are what is charged, assumed, and assumed of this pod."""
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


def usage_added(case: Case) -> Iterator[Addition]:
    for use in case.claims:
        yield str(use.claim), use.owner, use.adds
    yield str(case.pod), case.queue, case.requests


def non_preemptible_added(case: Case) -> Iterator[Addition]:
    for use in case.claims:
        yield str(use.claim), use.owner, use.adds_non_preemptible
    if case.pod.non_preemptible:
        yield str(case.pod), case.queue, case.requests
