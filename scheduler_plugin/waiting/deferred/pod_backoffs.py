"""The back-off of pods whose binding, or a step before it, failed.

An admitted pod holds its room until it is bound. A pod that can never be bound would hold it again
in each attempt, while other pods could use it. So it backs off: not after its first failure, which
may be a conflict, and twice as long after each further failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from kube.backoff import Backoff, no_jitter
from kube.shapes.times import timestamp
from scheduler_plugin.objects.names import PodUid

FIRST_SECONDS = 2.0
LONGEST_SECONDS = 300.0

LONGEST_FOR_OTHERS_SECONDS = 10.0
"""The longest back-off where the API server may be at fault, for example without etcd: then each
pod fails."""

_BACKOFF = Backoff(first_seconds=FIRST_SECONDS, cap_seconds=LONGEST_SECONDS)

_FORGOTTEN_SECONDS = 2 * LONGEST_SECONDS
"""How long a pod's failures count after its back-off, at least."""


@dataclass(frozen=True, slots=True)
class _Failures:
    """The number of failures in a row, and the end of the back-off."""

    count: int
    until: float


class PodBackoffs:
    """The pods whose last attempt failed. Moments are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._failures: dict[PodUid, _Failures] = {}

    def failed(self, pod: PodUid, moment: float, longest: float = LONGEST_SECONDS) -> float:
        """Note a failure; returns the end of the back-off, of at most `longest` seconds."""
        self._forget_old(moment)
        before = self._failures.pop(pod, None)
        count = before.count + 1 if before is not None else 1
        # The first failure may be a conflict: the pod is tried again at once.
        until = moment + min(longest, _BACKOFF.delay(count - 1, no_jitter))
        self._failures[pod] = _Failures(count, until)
        return until

    def forget(self, pod: PodUid) -> None:
        """The pod was bound, or is gone."""
        self._failures.pop(pod, None)

    def why_not(self, pod: PodUid, moment: float, now: datetime) -> str:
        """Why the pod backs off now, as a sentence; "" where it does not.

        `now` is the wall-clock time at `moment`. The sentence holds whole seconds, so that it stays
        the same during a back-off.
        """
        found = self._failures.get(pod)
        if found is None or found.until <= moment:
            return ""
        tried_at = now + timedelta(seconds=found.until - moment + 0.5)
        return (
            f"Its last {found.count} bindings failed: it is tried again at"
            f" {timestamp(tried_at)}, and others go first."
        )

    def _forget_old(self, moment: float) -> None:
        """Drop old entries; the pods that failed the longest ago are first."""
        while self._failures:
            pod, found = next(iter(self._failures.items()))
            if moment < found.until + _FORGOTTEN_SECONDS:
                return
            del self._failures[pod]
