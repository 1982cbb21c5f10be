"""Amounts of devices: charges, and the ceilings that they are compared with.

A charge is a whole number of at least 0; a ceiling is a whole number or unlimited. They are
different types, so that -1, the API's value for unlimited, is never used in arithmetic. Python's
integers do not overflow; amounts are limited to 64 bits only when they are written to the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NewType

ResourceKey = NewType("ResourceKey", str)
"""A resource that queues count: a DeviceClass or, for Moorage's devices, a Configuration."""

NO_KEY = ResourceKey("")

NO_CEILING = -1
LARGEST = 2**63 - 1
"""The largest number of the API, an int64."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A quota or a limit; `most` is None if it is unlimited."""

    most: int | None

    def allows(self, amount: int) -> bool:
        return self.most is None or amount <= self.most

    def __str__(self) -> str:
        return "none" if self.most is None else str(self.most)


UNLIMITED = Ceiling(None)
NOTHING = Ceiling(0)


def ceiling(number: int) -> Ceiling:
    """A ceiling from its number in the API: -1 is unlimited; others must not be negative."""
    return UNLIMITED if number == NO_CEILING else Ceiling(number)


@dataclass(frozen=True, slots=True)
class Charges:
    """Amounts of resources; immutable, without zeros, in the order of the keys."""

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
    """The charges with these amounts; zeros are omitted."""
    found = tuple(sorted((key, amount) for key, amount in amounts.items() if amount))
    return Charges(found) if found else NO_CHARGES


def summed(parts: Iterable[Charges]) -> Charges:
    amounts: dict[ResourceKey, int] = {}
    for part in parts:
        for key, amount in part:
            amounts[key] = amounts.get(key, 0) + amount
    return charges(amounts)


def most_of(parts: Iterable[Charges]) -> Charges:
    """The largest amount of each resource in any part."""
    amounts: dict[ResourceKey, int] = {}
    for part in parts:
        for key, amount in part:
            amounts[key] = max(amounts.get(key, 0), amount)
    return charges(amounts)


def least_of(parts: Iterable[Charges]) -> Charges:
    """The smallest amount of each resource in any part."""
    amounts: dict[ResourceKey, int] | None = None
    for part in map(dict, parts):
        found = part if amounts is None else amounts
        amounts = {key: min(found[key], part[key]) for key in found.keys() & part.keys()}
    return charges(amounts or {})


def for_status(amount: int) -> int:
    """An amount limited to the largest number of the API."""
    return min(amount, LARGEST)
