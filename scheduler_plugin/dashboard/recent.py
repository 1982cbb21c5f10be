"""The last Events that this process told: evictions, owners, refusals."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

MOST = 500
"""How many are remembered: an Event is at most some 1,500 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """An Event, as it was told."""

    at: str
    type: str
    reason: str
    action: str
    kind: str
    namespace: str
    name: str
    note: str


class Recent:
    """The last ones; older ones are forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._rows: deque[EventRow] = deque(maxlen=most)
        self.count = 0
        """How many there were in all."""

    def add(self, row: EventRow) -> None:
        self.count += 1
        self._rows.append(row)

    def rows(self) -> Iterator[EventRow]:
        """The newest first."""
        return iter(list(reversed(self._rows)))
