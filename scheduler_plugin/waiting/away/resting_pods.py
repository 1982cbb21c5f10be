"""Pods that rest because their binding, or what leads to it, failed again and again.

A pod that is admitted holds its room while it is bound. One that can never be bound would take it
each time it is tried, before others that could use it. So it rests: not after its first failure,
which may be a conflict, and each time twice as long after that.
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
"""The same where the fault may be the API server's, as while etcd is away: it fails each pod."""

_BACKOFF = Backoff(first_seconds=FIRST_SECONDS, cap_seconds=LONGEST_SECONDS)

_FORGOTTEN_SECONDS = 2 * LONGEST_SECONDS
"""How long after its rest a pod's failures count, at least."""


@dataclass(frozen=True, slots=True)
class _Failures:
    """How often a pod failed in a row, and until when it rests."""

    count: int
    until: float


class RestingPods:
    """The pods whose last attempt failed. Moments are those of the monotonic clock."""

    def __init__(self) -> None:
        self._failures: dict[PodUid, _Failures] = {}

    def failed(self, pod: PodUid, moment: float, longest: float = LONGEST_SECONDS) -> float:
        """Note a failure; returns until when the pod rests, `longest` seconds at the most."""
        self._forget_old(moment)
        before = self._failures.pop(pod, None)
        count = before.count + 1 if before is not None else 1
        # The first may be a conflict: it is tried again at once.
        until = moment + min(longest, _BACKOFF.delay(count - 1, no_jitter))
        self._failures[pod] = _Failures(count, until)
        return until

    def forget(self, pod: PodUid) -> None:
        """It succeeded, or is gone."""
        self._failures.pop(pod, None)

    def why_not(self, pod: PodUid, moment: float, now: datetime) -> str:
        """Why the pod is not tried now, as a sentence; "" where it may be.

        `now` is what clocks show at the moment; to whole seconds the sentence stays the same.
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
        """The pods that failed the longest ago stand first."""
        while self._failures:
            pod, found = next(iter(self._failures.items()))
            if moment < found.until + _FORGOTTEN_SECONDS:
                return
            del self._failures[pod]
