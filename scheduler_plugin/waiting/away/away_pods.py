"""Pods that are not in the queue until a moment: assumed pods, and pods that back off.

Moments are seconds of the monotonic clock.
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
"""How long a pod without a gate stays assumed: longer than kube-scheduler's longest back-off."""


class AwayPods:
    """The pods that are not judged before their moment, or before an event concerns them.

    Attributes:
        going: The assumed pods.
        resting: The pods in backoff.
        failures: The failures of each pod, from which its back-off follows.
    """

    def __init__(self) -> None:
        self.going: Due[PodUid] = Due()
        self.resting: Due[PodUid] = Due()
        self.failures = RestingPods()

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self.going or uid in self.resting

    def forget(self, uid: PodUid) -> None:
        """The pod does not wait any more."""
        self.going.drop(uid)
        self.resting.drop(uid)
        self.failures.forget(uid)

    def go(self, pod: PodView, moment: float) -> None:
        """The pod is admitted: it is assumed until its gate is gone or kube-scheduler tries it."""
        seconds = LAPSE.total_seconds() if pod.is_gated else TRIED_SECONDS
        self.going.set(pod.uid, moment + seconds)

    def rest(self, uid: PodUid, moment: float, *, is_servers: bool = False) -> None:
        """The pod failed, and backs off; `is_servers`: the API server may be at fault."""
        longest = LONGEST_FOR_OTHERS_SECONDS if is_servers else LONGEST_SECONDS
        self.resting.set(uid, self.failures.failed(uid, moment, longest))

    def is_going(self, uid: PodUid, moment: float) -> bool:
        """Whether the pod stays assumed until after `moment`."""
        until = self.going.at(uid)
        return until is not None and until > moment

    def next_moment(self) -> float | None:
        """When the first assumption or back-off ends; None where there is none."""
        moments = (self.going.next_moment(), self.resting.next_moment())
        return min((moment for moment in moments if moment is not None), default=None)
