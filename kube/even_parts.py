"""What clients have of something that is bounded, such as connections.

Up to the bound everybody gets what he asks for. Beyond it only those get more who have less than an
even part: so whoever takes all of it keeps nobody else from his part, and has not to be found out.
All together have little more than the bound: it, and an even part for each who came late.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class EvenParts(Generic[K]):
    """Who has how much."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._has: dict[K, int] = {}
        self._total = 0

    def take(self, client: K, amount: int = 1) -> bool:
        """Let a client have so much more, if it may."""
        has = self._has.get(client, 0) + amount
        clients = len(self._has.keys() | {client})
        if self._total + amount > self._most and has > self._most // clients:
            return False
        self._has[client] = has
        self._total += amount
        return True

    def give_back(self, client: K, amount: int = 1) -> None:
        """A client has so much less."""
        self._total -= amount
        self._has[client] -= amount
        if not self._has[client]:
            del self._has[client]
