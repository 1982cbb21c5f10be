"""How long a pod rests whose binding failed again and again.

A pod that is admitted holds its room while it is bound. One that can never be bound would take it
each time it is tried, before others that could use it. So it rests: not after its first failure,
which may be a conflict, and each time twice as long after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_plugin.names import PodUid

FIRST_REST = timedelta(seconds=2)
LONGEST_REST = timedelta(minutes=5)

_FORGOTTEN_AFTER = 2 * LONGEST_REST


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    at: datetime

    @property
    def until(self) -> datetime:
        if self.count < 2:
            return self.at
        return self.at + min(LONGEST_REST, FIRST_REST * (1 << min(self.count - 2, 30)))


class Backoffs:
    """The pods whose last attempt failed."""

    def __init__(self) -> None:
        # In the order of their last failures.
        self._pods: dict[PodUid, _Failures] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def failed(self, pod: PodUid, now: datetime) -> datetime:
        """Note a failure; returns until when the pod rests."""
        self._prune(now)
        before = self._pods.pop(pod, None)
        found = self._pods[pod] = _Failures(before.count + 1 if before else 1, now)
        return found.until

    def _prune(self, now: datetime) -> None:
        """Forget what was long ago, and deleted pods with it."""
        old = []
        for pod, failures in self._pods.items():
            if failures.at + _FORGOTTEN_AFTER > now:
                break
            old.append(pod)
        for pod in old:
            del self._pods[pod]

    def forget(self, pod: PodUid) -> None:
        """It succeeded, or is gone."""
        self._pods.pop(pod, None)

    def why_not(self, pod: PodUid, now: datetime) -> str:
        """Why the pod is not tried now, as a sentence; "" where it may be.

        After the clock was set back it may be: its rest would last for longer by as much.
        """
        failures = self._pods.get(pod)
        if failures is None or not failures.at <= now < failures.until:
            return ""
        return (
            f"Its last {failures.count} bindings failed: it is tried again at"
            f" {failures.until:%Y-%m-%dT%H:%M:%SZ}, and others go first."
        )
