"""Tables without empty entries: members by key, and counts by key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
U = TypeVar("U")

Index = dict[K, dict[U, None]]
"""Members by key. Dicts serve as ordered sets, so that the same history gives the same order."""


def enter(index: Index[K, U], keys: Iterable[K], member: U, sign: int = 1) -> None:
    """Enter a member under each key; with a sign of -1 remove it, which must be entered."""
    for key in keys:
        if sign > 0:
            index.setdefault(key, {})[member] = None
        else:
            del index[key][member]
            if not index[key]:
                del index[key]


def uncount(table: dict[K, dict[U, int]], at: K, member: U) -> None:
    """Subtract one from a member's count under a key."""
    found = table[at]
    count(found, member, -1)
    if not found:
        del table[at]


def count(table: dict[K, int], key: K, by: int) -> None:
    """Add to the count of a key; counts below 1 are removed."""
    remaining = table.get(key, 0) + by
    if remaining > 0:
        table[key] = remaining
    else:
        table.pop(key, None)
