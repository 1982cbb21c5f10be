"""Numbers and lists of names as sentences have them."""

from __future__ import annotations

from collections.abc import Sequence


def number_of(count: int, noun: str) -> str:
    """`1 pod`, `2 pods`: of nouns that add an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def some_of(names: Sequence[str], most: int = 3) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
