"""Pods that are out of their line until a moment: those that were let go, and those that rest.

Moments are those of the monotonic clock.
"""

from __future__ import annotations

from scheduler_plugin.accounting.assumptions import LAPSE
from scheduler_plugin.due import Due
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.away.resting_pods import (
    LONGEST_FOR_OTHERS_SECONDS,
    LONGEST_SECONDS,
    RestingPods,
)

TRIED_SECONDS = 15.0
"""How long it holds that a pod fits which was told so: longer than kube-scheduler backs off."""


class AwayPods:
    """Nothing is decided of these before their moment, or before something is heard of them."""

    def __init__(self) -> None:
        self.going: Due[PodUid] = Due()
        self.resting: Due[PodUid] = Due()
        self.failures = RestingPods()

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self.going or uid in self.resting

    def forget(self, uid: PodUid) -> None:
        """It waits no more."""
        self.going.drop(uid)
        self.resting.drop(uid)
        self.failures.forget(uid)

    def go(self, pod: PodView, moment: float) -> None:
        """It is let go: its gate is removed, or it is told that it fits."""
        seconds = LAPSE.total_seconds() if pod.is_gated else TRIED_SECONDS
        self.going.set(pod.uid, moment + seconds)

    def rest(self, uid: PodUid, moment: float, *, is_servers: bool = False) -> None:
        """It failed again; `is_servers` says whether the fault may be the API server's."""
        longest = LONGEST_FOR_OTHERS_SECONDS if is_servers else LONGEST_SECONDS
        self.resting.set(uid, self.failures.failed(uid, moment, longest))

    def is_going(self, uid: PodUid, moment: float) -> bool:
        """Whether it is decided, and holds until then, that the pod is let go."""
        until = self.going.at(uid)
        return until is not None and until > moment

    def next_moment(self) -> float | None:
        """When the first of them is over; None where there is none."""
        moments = (self.going.next_moment(), self.resting.next_moment())
        return min((moment for moment in moments if moment is not None), default=None)
