"""Keys by round robin: a group with thousands of keys does not delay those of other groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


def one_group(_: Hashable) -> Hashable:
    """All keys are of one group, so they come in the order in which they were added."""
    return ""


class RoundRobin(Generic[K]):
    """A set of keys: groups alternate, and each gives its oldest key."""

    def __init__(self, group: Callable[[K], Hashable]) -> None:
        """Create; a key must always be of the same group."""
        self._group = group
        self._keys: dict[Hashable, dict[K, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: K) -> None:
        """Add the key, unless it is there."""
        keys = self._keys.setdefault(self._group(key), {})
        self._count += key not in keys
        keys.setdefault(key)

    def take(self) -> K | None:
        """Remove the next key and return it; None if there is none."""
        for group, keys in self._keys.items():
            key = next(iter(keys))
            del keys[key], self._keys[group]
            if keys:
                self._keys[group] = keys
            self._count -= 1
            return key
        return None
