"""How long a Queue's status rests after a write: the longer, the longer its figures keep changing.

One change is shown at once. Under load every figure changes all the time, and whoever reads them a
second later reads another one anyway: there the writes would be a tenth of the API server's work,
which costs as much for a merge patch of one figure as for an apply of them all.
Moments and spans are seconds of the caller's own clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler_plugin.names import QueueName

SHORTEST = 1.0
LONGEST = 5.0


@dataclass(frozen=True, slots=True)
class _Rest:
    began_at: float
    seconds: float


@dataclass(slots=True)
class StatusRests:
    """The rests of the queues that were written."""

    _rests: dict[QueueName, _Rest] = field(default_factory=dict)

    def begin(self, queue: QueueName, now: float) -> float:
        """The queue is written now; returns for how long it rests then.

        One that was written again before it was quiet for as long as its rest took rests twice as
        long as before.
        """
        seconds = SHORTEST
        before = self._rests.get(queue)
        if before is not None and now < before.began_at + 2 * before.seconds:
            seconds = min(LONGEST, 2 * before.seconds)
        self._rests[queue] = _Rest(now, seconds)
        return seconds

    def forget(self, queue: QueueName) -> None:
        """The queue is gone."""
        self._rests.pop(queue, None)
