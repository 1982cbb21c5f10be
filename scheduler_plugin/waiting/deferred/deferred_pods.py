"""Pods that are not in the queue until a moment: assumed pods, and pods that back off.

Moments are seconds of the monotonic clock.
"""

from __future__ import annotations

from kube.due import Due
from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.deferred.pod_backoffs import (
    LONGEST_FOR_OTHERS_SECONDS,
    LONGEST_SECONDS,
    PodBackoffs,
)

TRIED_SECONDS = 15.0
"""How long a pod without a gate stays assumed: longer than kube-scheduler's longest back-off."""


class DeferredPods:
    """The pods that are not judged before their moment, or before an event concerns them.

    Attributes:
        assumed: The assumed pods.
        backoff: The pods in backoff.
        failures: The failures of each pod, from which its back-off follows.
    """

    def __init__(self) -> None:
        self.assumed: Due[PodUid] = Due()
        self.backoff: Due[PodUid] = Due()
        self.failures = PodBackoffs()

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self.assumed or uid in self.backoff

    def forget(self, uid: PodUid) -> None:
        """The pod does not wait any more."""
        self.assumed.drop(uid)
        self.backoff.drop(uid)
        self.failures.forget(uid)

    def assume(self, pod: PodView, moment: float) -> None:
        """The pod is admitted: it is assumed until its gate is gone or kube-scheduler tries it."""
        seconds = ASSUMED_TTL.total_seconds() if pod.is_gated else TRIED_SECONDS
        self.assumed.set(pod.uid, moment + seconds)

    def back_off(self, uid: PodUid, moment: float, *, is_servers: bool = False) -> None:
        """The pod failed, and backs off; `is_servers`: the API server may be at fault."""
        longest = LONGEST_FOR_OTHERS_SECONDS if is_servers else LONGEST_SECONDS
        self.backoff.set(uid, self.failures.failed(uid, moment, longest))

    def stays_assumed(self, uid: PodUid, moment: float) -> bool:
        """Whether the pod stays assumed until after `moment`."""
        until = self.assumed.at(uid)
        return until is not None and until > moment

    def next_moment(self) -> float | None:
        """When the first assumption or back-off ends; None where there is none."""
        moments = (self.assumed.next_moment(), self.backoff.next_moment())
        return min((moment for moment in moments if moment is not None), default=None)
