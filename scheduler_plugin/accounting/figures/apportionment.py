"""An amount of whole devices divided among claimants, in proportion to their weights.

Devices are whole. They are dealt one after the other, always to whoever the next one leaves the
farthest below its part (Webster's rule): so more devices are never fewer for anybody.
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
    """One of those among whom an amount is divided.

    Attributes:
        band: The smaller gets all that it wants before the next gets anything.
        weight: Its part beside others of the band, at least 1.
        wants: The most that it takes.
        name: The smaller goes first where all else is equal.
    """

    band: tuple[int, int]
    weight: int
    wants: int
    name: QueueName

    def turn(self, has: int) -> Fraction:
        """When its next one is dealt, if it has so many; the smaller turn is earlier."""
        return Fraction(2 * has + 1, self.weight)


def divided(amount: int | None, claimants: Iterable[Claimant]) -> dict[QueueName, int]:
    """What each gets of an amount; of one without an end all that it wants."""
    given: dict[QueueName, int] = {}
    in_order = sorted(claimants, key=lambda claimant: claimant.band)
    for _, group in groupby(in_order, key=lambda claimant: claimant.band):
        band = list(group)
        parts = _dealt(amount, band)
        for claimant, part in zip(band, parts, strict=True):
            given[claimant.name] = given.get(claimant.name, 0) + part
        amount = None if amount is None else amount - sum(parts)
    return given


def _dealt(amount: int | None, band: list[Claimant]) -> list[int]:
    wants = [claimant.wants for claimant in band]
    if amount is None or amount >= sum(wants):
        return wants
    given = _dealt_at_once(amount, band)
    heap = [(band[n].turn(given[n]), band[n].name, n) for n in range(len(band))]
    heapify(heap)
    left = amount - sum(given)
    while left:
        _, name, n = heappop(heap)
        if given[n] < wants[n]:
            given[n] += 1
            left -= 1
            heappush(heap, (band[n].turn(given[n]), name, n))
    return given


def _dealt_at_once(amount: int, band: list[Claimant]) -> list[int]:
    """What dealing one by one comes to as well, but for the last few: amounts may be large.

    All turns up to a certain one are dealt. Up to a turn nobody has more than half of one beyond
    its part, so with these halves the turn is one at which there is enough.
    """
    given = [0] * len(band)
    weights, left = sum(claimant.weight for claimant in band), amount
    last_turns = sorted((c.turn(c.wants - 1), n) for n, c in enumerate(band))
    for done, (last_turn, n) in enumerate(last_turns):
        turn = Fraction(2 * left - (len(band) - done), weights)
        if last_turn > turn:
            for _, other in last_turns[done:]:
                given[other] = max(0, int(turn * band[other].weight + 1) // 2)
            break
        given[n] = band[n].wants
        left -= band[n].wants
        weights -= band[n].weight
    return given
