"""A table over another one: it has changes of its own and never changes the other.

It costs as much as is changed, whatever the size of the other. Values must not be changed in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Overlay(MutableMapping[K, V]):
    """A mapping with the order that a dict would have after the same changes."""

    def __init__(self, under: Mapping[K, V]) -> None:
        self._under = under
        self._changed: dict[K, V] = {}
        self._deleted: set[K] = set()
        """Deleted keys of `_under`. A key that is set again has the place of a new one."""

    def __getitem__(self, key: K) -> V:
        if key in self._changed:
            return self._changed[key]
        if key in self._deleted:
            raise KeyError(key)
        return self._under[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._changed[key] = value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._changed.pop(key, None)
        if key in self._under:
            self._deleted.add(key)

    def __iter__(self) -> Iterator[K]:
        yield from (key for key in self._under if key not in self._deleted)
        yield from (key for key in self._changed if self._is_new(key))

    def __len__(self) -> int:
        new = sum(self._is_new(key) for key in self._changed)
        return len(self._under) - len(self._deleted) + new

    def _is_new(self, key: K) -> bool:
        return key in self._deleted or key not in self._under
