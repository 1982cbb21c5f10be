"""Limits how often the status of a Queue is written."""

from __future__ import annotations

from dataclasses import dataclass

from kube.backoff import Backoff, no_jitter
from scheduler_plugin.objects.names import QueueName


@dataclass(frozen=True, slots=True)
class _Row:
    """Writes in a row: each began before the interval had passed twice since the one before.

    Attributes:
        until: When the next write may begin.
        ends_at: When the row ends; a later write is the first of a new row.
    """

    writes: int
    until: float
    ends_at: float


class StatusRateLimits:
    """When each status may be written again. Moments are seconds of the monotonic clock."""

    def __init__(self, interval: Backoff) -> None:
        """`interval` is the interval between two writes, by the number of writes in a row."""
        self._interval = interval
        self._rows: dict[QueueName, _Row] = {}

    def wrote(self, name: QueueName, moment: float) -> None:
        """Note a write of the Queue's status."""
        row = self._rows.get(name)
        writes = row.writes + 1 if row is not None and moment < row.ends_at else 1
        seconds = self._interval.delay(writes, no_jitter)
        self._rows[name] = _Row(writes, moment + seconds, moment + 2 * seconds)

    def seconds(self, name: QueueName, moment: float) -> float:
        """How long the next write must wait; 0 if it may begin now."""
        row = self._rows.get(name)
        return max(0.0, row.until - moment) if row is not None else 0.0

    def forget(self, name: QueueName) -> None:
        """Forget the Queue's writes: it may be written at once, or was deleted."""
        self._rows.pop(name, None)
