"""The division of an amount of whole devices among claimants, in proportion to their weights.

Devices are assigned one by one, each to the claimant that is farthest below its part afterwards
(Webster's method). So a larger amount gives no claimant fewer devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import groupby

from scheduler_plugin.objects.names import QueueName


@dataclass(frozen=True, slots=True)
class Claimant:
    """A claimant of a part of an amount.

    Attributes:
        band: Smaller bands get all that they want before larger ones get anything.
        weight: The weight within the band, at least 1.
        wants: The maximum that it takes.
        name: The queue; the smaller name is served first if all else is equal.
    """

    band: tuple[int, int]
    weight: int
    wants: int
    name: QueueName

    def rank(self, has: int) -> Fraction:
        """The rank of its next device, if it has this many; smaller ranks are served first."""
        return Fraction(2 * has + 1, self.weight)


def divided(amount: int | None, claimants: Iterable[Claimant]) -> dict[QueueName, int]:
    """What each claimant gets of an amount; of an unlimited amount (None) all that it wants."""
    given: dict[QueueName, int] = {}
    in_order = sorted(claimants, key=lambda claimant: claimant.band)
    for _, group in groupby(in_order, key=lambda claimant: claimant.band):
        band = list(group)
        parts = _assigned(amount, band)
        for claimant, part in zip(band, parts, strict=True):
            given[claimant.name] = given.get(claimant.name, 0) + part
        amount = None if amount is None else amount - sum(parts)
    return given


def _assigned(amount: int | None, band: list[Claimant]) -> list[int]:
    wants = [claimant.wants for claimant in band]
    if amount is None or amount >= sum(wants):
        return wants
    given = _assigned_at_once(amount, band)
    heap = [(band[n].rank(given[n]), band[n].name, n) for n in range(len(band))]
    heapify(heap)
    remaining = amount - sum(given)
    while remaining:
        _, name, n = heappop(heap)
        if given[n] < wants[n]:
            given[n] += 1
            remaining -= 1
            heappush(heap, (band[n].rank(given[n]), name, n))
    return given


def _assigned_at_once(amount: int, band: list[Claimant]) -> list[int]:
    """Assign all but the last few devices in one computation, since amounts may be large.

    It assigns all devices up to a certain rank. Up to any rank, no claimant has more than half a
    device beyond its part; subtracting these halves gives a rank for which the amount suffices.
    """
    given = [0] * len(band)
    weights, remaining = sum(claimant.weight for claimant in band), amount
    last_ranks = sorted((c.rank(c.wants - 1), n) for n, c in enumerate(band))
    for done, (last_rank, n) in enumerate(last_ranks):
        rank = Fraction(2 * remaining - (len(band) - done), weights)
        if last_rank > rank:
            for _, other in last_ranks[done:]:
                given[other] = max(0, int(rank * band[other].weight + 1) // 2)
            break
        given[n] = band[n].wants
        remaining -= band[n].wants
        weights -= band[n].weight
    return given
