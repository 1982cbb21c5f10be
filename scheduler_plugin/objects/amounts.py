"""Amounts of devices: what is charged, and the ceilings it is held against.

A charge is a whole number and never negative; a ceiling is a whole number or none at all. They
are different types, so that -1, the API's word for "none", never gets into arithmetic. Python's
whole numbers do not wrap around; only what leaves for the API is cut to its 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NewType

ResourceKey = NewType("ResourceKey", str)
"""What queues count: the name of a DeviceClass or, for Moorage's own devices, a Configuration."""

NO_KEY = ResourceKey("")

NO_CEILING = -1
LARGEST = 2**63 - 1
"""The largest number of the API, an int64."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A quota or a limit; `most` is None where there is none."""

    most: int | None

    def allows(self, amount: int) -> bool:
        return self.most is None or amount <= self.most

    def __str__(self) -> str:
        return "none" if self.most is None else str(self.most)


UNLIMITED = Ceiling(None)
NOTHING = Ceiling(0)


def ceiling(number: int) -> Ceiling:
    """A ceiling as the API writes it: -1 is none; the caller has refused other negative ones."""
    return UNLIMITED if number == NO_CEILING else Ceiling(number)


@dataclass(frozen=True, slots=True)
class Charges:
    """How much of which resources; immutable, without zeros, in the order of the keys."""

    items: tuple[tuple[ResourceKey, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.items)

    def __iter__(self) -> Iterator[tuple[ResourceKey, int]]:
        return iter(self.items)

    def __getitem__(self, key: ResourceKey) -> int:
        return next((amount for item, amount in self.items if item == key), 0)

    def plus(self, other: Charges) -> Charges:
        if not other:
            return self
        return summed((self, other)) if self else other


NO_CHARGES = Charges()


def charges(amounts: Mapping[ResourceKey, int]) -> Charges:
    """The charges that these amounts are; zeros are left out."""
    found = tuple(sorted((key, amount) for key, amount in amounts.items() if amount))
    return Charges(found) if found else NO_CHARGES


def summed(parts: Iterable[Charges]) -> Charges:
    amounts: dict[ResourceKey, int] = {}
    for part in parts:
        for key, amount in part:
            amounts[key] = amounts.get(key, 0) + amount
    return charges(amounts)


def most_of(parts: Iterable[Charges]) -> Charges:
    """For each resource the largest amount that any part has."""
    amounts: dict[ResourceKey, int] = {}
    for part in parts:
        for key, amount in part:
            amounts[key] = max(amounts.get(key, 0), amount)
    return charges(amounts)


def for_status(amount: int) -> int:
    """An amount as the API can hold it."""
    return min(amount, LARGEST)
