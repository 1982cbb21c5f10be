"""Fair shares of something that is bounded, such as connections.

Up to the bound every request is granted. Beyond it only clients with less than an even part are
granted more. So a client that takes everything does not keep other clients from their parts, and
need not be detected. The total exceeds the bound by at most an even part for each client that came
late.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class FairLimit(Generic[K]):
    """How much each client has."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._has: dict[K, int] = {}
        self._total = 0

    def take(self, client: K, amount: int = 1) -> bool:
        """Grant a client this amount; False where it exceeds the client's part."""
        has = self._has.get(client, 0) + amount
        clients = len(self._has.keys() | {client})
        if self._total + amount > self._most and has > self._most // clients:
            return False
        self._has[client] = has
        self._total += amount
        return True

    def give_back(self, client: K, amount: int = 1) -> None:
        """Return this amount, which the client was granted before."""
        self._total -= amount
        self._has[client] -= amount
        if not self._has[client]:
            del self._has[client]
