"""Tables that hold nothing empty: who is entered under a key, and how many there are of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
U = TypeVar("U")

Index = dict[K, dict[U, None]]
"""Dicts as ordered sets: the same history gives the same order."""


def enter(index: Index[K, U], keys: Iterable[K], member: U, sign: int = 1) -> None:
    """Enter a member under each key; with a sign of -1 take it out, which must be there."""
    for key in keys:
        if sign > 0:
            index.setdefault(key, {})[member] = None
        else:
            del index[key][member]
            if not index[key]:
                del index[key]


def count(table: dict[K, int], key: K, by: int) -> None:
    """Count so many more of a key; what is left of nothing is nothing."""
    left = table.get(key, 0) + by
    if left > 0:
        table[key] = left
    else:
        table.pop(key, None)
