"""How often the status of a Queue may be written that changes all the time."""

from __future__ import annotations

from dataclasses import dataclass

from kube.backoff import Backoff, no_jitter
from scheduler_plugin.api import QueueName


@dataclass(frozen=True, slots=True)
class _Row:
    """Writes without a pause that was as long as the rest before it.

    Attributes:
        ends_at: From then on, a write is the first of a new row.
    """

    writes: int
    until: float
    ends_at: float


class StatusPaces:
    """Until when each status rests. Moments are seconds of the monotonic clock."""

    def __init__(self, rest: Backoff) -> None:
        """`rest` says how long a status rests, by how many writes there were in a row."""
        self._rest = rest
        self._rows: dict[QueueName, _Row] = {}

    def wrote(self, name: QueueName, moment: float) -> None:
        """Its status is written."""
        row = self._rows.get(name)
        writes = row.writes + 1 if row is not None and moment < row.ends_at else 1
        seconds = self._rest.delay(writes, no_jitter)
        self._rows[name] = _Row(writes, moment + seconds, moment + 2 * seconds)

    def seconds(self, name: QueueName, moment: float) -> float:
        """How long it rests from this moment on; 0 where it may be written."""
        row = self._rows.get(name)
        return max(0.0, row.until - moment) if row is not None else 0.0

    def forget(self, name: QueueName) -> None:
        """It may be written at once; or the Queue is gone."""
        self._rows.pop(name, None)
