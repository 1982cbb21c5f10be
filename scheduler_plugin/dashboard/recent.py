"""The last Events that this process told: evictions, owners, refusals."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from scheduler_plugin.dashboard.snapshots import Line

MOST = 500
"""How many are remembered: an Event is at most some 1,500 bytes, and a filter looks at most of
them once more."""


class Recent:
    """The last ones; older ones are forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._lines: deque[Line] = deque(maxlen=most)
        self.count = 0
        """How many there were in all."""

    def add(self, line: Line) -> None:
        self.count += 1
        self._lines.append(line)

    def lines(self) -> Iterator[Line]:
        """The newest first."""
        yield from list(reversed(self._lines))
