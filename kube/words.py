"""Numbers and lists of names, as text for sentences."""

from __future__ import annotations

from collections.abc import Iterable


def number_of(count: int, noun: str) -> str:
    """`1 pod`, `2 pods`; only for nouns whose plural adds an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def some_of(names: Iterable[str], most: int = 3) -> str:
    """`a, b, c and 2 more`: the first names, and the number of the others."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"{', '.join(found[:most])}{more}"
