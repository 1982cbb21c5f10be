"""Pods that rest because their binding, or what leads to it, failed again and again.

A pod that is admitted holds its room while it is bound. One that can never be bound would take it
each time it is tried, before others that could use it. So it rests: not after its first failure,
which may be a conflict, and each time twice as long after that.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from driver.api import timestamp
from scheduler_plugin.due import Rests
from scheduler_plugin.objects.names import PodUid

FIRST_SECONDS = 2.0
LONGEST_SECONDS = 300.0

LONGEST_FOR_OTHERS_SECONDS = 10.0
"""The same where the fault may be the API server's, as while etcd is away: it fails each pod."""


class RestingPods:
    """The pods whose last attempt failed. Moments are those of the monotonic clock."""

    def __init__(self) -> None:
        self._rests: Rests[PodUid] = Rests(2 * LONGEST_SECONDS)

    def failed(self, pod: PodUid, moment: float, longest: float = LONGEST_SECONDS) -> float:
        """Note a failure; returns until when the pod rests, `longest` seconds at the most."""
        return self._rests.again(pod, moment, lambda times: min(longest, _seconds(times)))

    def forget(self, pod: PodUid) -> None:
        """It succeeded, or is gone."""
        self._rests.forget(pod)

    def why_not(self, pod: PodUid, moment: float, now: datetime) -> str:
        """Why the pod is not tried now, as a sentence; "" where it may be.

        `now` is what clocks show at the moment; to whole seconds the sentence stays the same.
        """
        until = self._rests.until(pod, moment)
        if until is None:
            return ""
        tried_at = now + timedelta(seconds=until - moment + 0.5)
        return (
            f"Its last {self._rests.times(pod)} bindings failed: it is tried again at"
            f" {timestamp(tried_at)}, and others go first."
        )


def _seconds(failures: int) -> float:
    if failures < 2:
        return 0.0
    return min(LONGEST_SECONDS, FIRST_SECONDS * (1 << min(failures - 2, 30)))
