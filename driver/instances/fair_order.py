"""Fair order: many writes of one Configuration must not hold up the few of another.

decisions of all Configurations ──fair_order──► one of each, the one with the fewest first, …
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def fair_order(items: Iterable[T], whose: Callable[[T], Hashable]) -> tuple[T, ...]:
    """The items in round-robin order: each cycle has one item of each owner with items left.

    Within a cycle the owners with the fewest items go first. The items of one owner keep their
    order. So an owner with n items is done after n cycles, however many items others have.
    """
    owned: dict[Hashable, list[T]] = {}
    for item in items:
        owned.setdefault(whose(item), []).append(item)
    ranks = {owner: rank for rank, owner in enumerate(sorted(owned, key=lambda o: len(owned[o])))}
    cycles = [
        (cycle, ranks[owner], item)
        for owner, own in owned.items()
        for cycle, item in enumerate(own)
    ]
    return tuple(item for _, _, item in sorted(cycles, key=lambda cycle: cycle[:2]))


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in their order, in batches of `size`; the last batch may be smaller."""
    return (items[start : start + size] for start in range(0, len(items), size))
