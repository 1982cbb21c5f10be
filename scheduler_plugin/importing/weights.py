"""Weights as whole numbers, as Queues have them.

Only the ratio of siblings counts, so all weights are multiplied by one factor if one of them is no
whole number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

ONE = 1000
"""A weight of 1 in thousandths."""

LARGEST = 1_000_000
"""The largest weight of a Queue."""


@dataclass(frozen=True, slots=True)
class WeightScale:
    """How weights in thousandths become whole numbers.

    Attributes:
        unit: The thousandths that are written as 1.
    """

    unit: int = ONE

    def written(self, thousandths: int | None) -> int | None:
        """The weight to write; None if the field is to be left out, which means 1."""
        if thousandths is None:
            return None if self.unit == ONE else min(ONE // self.unit, LARGEST)
        return min(thousandths // self.unit, LARGEST)

    def is_exact(self, thousandths: int) -> bool:
        return thousandths // self.unit <= LARGEST


def scale_of(weights: Iterable[int]) -> WeightScale:
    """The scale by which all weights, in thousandths, are whole."""
    known = tuple(weights)
    if all(weight % ONE == 0 for weight in known):
        return WeightScale()
    return WeightScale(gcd(ONE, *known))
