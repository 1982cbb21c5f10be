"""The states of a waiting pod, and each transition with its cause.

`TRANSITIONS` lists every transition that the gate keeper makes. `docs/reference/pod-states.md` is
generated from it, and tests compare it with what the keeper does. No field stores a pod's state:
it follows from the collection that holds the pod.

    NotWaiting ─► NotReady ─► Queued ─► Inadmissible ─► Assumed ─► NotWaiting
                                                           └─► Backoff ─► queued again
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.classes.waiting_pods import WaitingPods
from scheduler_plugin.waiting.deferred.deferred_pods import TRIED_SECONDS, DeferredPods


class PodState(StrEnum):
    """The state of a waiting pod, at the gate or refused without a gate."""

    NOT_WAITING = "NotWaiting"
    NOT_READY = "NotReady"
    QUEUED = "Queued"
    INADMISSIBLE = "Inadmissible"
    ASSUMED = "Assumed"
    BACKOFF = "Backoff"


MEANINGS: Mapping[PodState, str] = {
    PodState.NOT_WAITING: (
        "It has no gate of Moorage's, and was not refused in kube-scheduler's last attempt; or it"
        " runs, has ended, or is terminating."
    ),
    PodState.NOT_READY: (
        "It cannot be judged: it has other gates, a claim that it names does not exist, or it is"
        " another scheduler's."
    ),
    PodState.QUEUED: "It is in its queue, and no pod of its equivalence class was refused yet.",
    PodState.INADMISSIBLE: (
        "It is in its queue, and a pod of its equivalence class was judged and not admitted: a rule"
        " refused it, or it left room for another pod, or too few devices were free. It is judged"
        " anew when that may have changed."
    ),
    PodState.ASSUMED: (
        "It was admitted and counts as bound: its gate is being removed, or a condition says that"
        " it fits. It is in no queue meanwhile."
    ),
    PodState.BACKOFF: "It failed after it was admitted, and is in no queue until a back-off ends.",
}

_NOT_READY = "a claim that it names is deleted, or another gate is added"
_STOPS_WAITING = "it is bound, ends, is deleted, or its gate is removed"
_CAN_BE_JUDGED = "it can be judged, and its equivalence class was not refused"
_LIKE_OTHERS = "it can be judged, and its equivalence class was refused"
_STAYED = f"its gate is still there after {ASSUMED_TTL.total_seconds():.0f} seconds"
_RESTED = "the back-off is over"

TRANSITIONS: Mapping[PodState, Mapping[PodState, str]] = {
    PodState.NOT_WAITING: {
        PodState.NOT_READY: "it appears, and cannot be judged yet",
        PodState.QUEUED: "it appears, or kube-scheduler tried it and it was refused",
        PodState.INADMISSIBLE: "the same, and its equivalence class was refused",
    },
    PodState.NOT_READY: {
        PodState.NOT_WAITING: _STOPS_WAITING,
        PodState.QUEUED: _CAN_BE_JUDGED,
        PodState.INADMISSIBLE: _LIKE_OTHERS,
    },
    PodState.QUEUED: {
        PodState.NOT_WAITING: _STOPS_WAITING,
        PodState.NOT_READY: _NOT_READY,
        PodState.INADMISSIBLE: "the head of its equivalence class is judged, and not admitted",
        PodState.ASSUMED: "it is the head, and it fits",
    },
    PodState.INADMISSIBLE: {
        PodState.NOT_WAITING: _STOPS_WAITING,
        PodState.NOT_READY: _NOT_READY,
        PodState.QUEUED: "its queue, or what it requests, changes",
        PodState.ASSUMED: "it is the head again, and it fits by now",
    },
    PodState.ASSUMED: {
        PodState.NOT_WAITING: "its gate is removed, or kube-scheduler tried it and it passed",
        PodState.NOT_READY: f"{_STAYED}; and it cannot be judged any more",
        PodState.QUEUED: _STAYED,
        PodState.INADMISSIBLE: f"{_STAYED}; and its equivalence class was refused",
        PodState.BACKOFF: (
            "the write fails; or without a gate, kube-scheduler tried it and it was refused, or did"
            f" not try it within {TRIED_SECONDS:.0f} seconds"
        ),
    },
    PodState.BACKOFF: {
        PodState.NOT_WAITING: _STOPS_WAITING,
        PodState.NOT_READY: f"{_RESTED}, and it cannot be judged any more",
        PodState.QUEUED: _RESTED,
        PodState.INADMISSIBLE: f"{_RESTED}, and its equivalence class was refused",
    },
}
"""The cause of each transition, by the states before and after. No other transition happens."""


def state_of(uid: PodUid, waiting: WaitingPods, deferred: DeferredPods) -> PodState:
    """The state of a pod, by the collections of queued, assumed and backed-off pods."""
    if uid in deferred.assumed:
        return PodState.ASSUMED
    if uid in deferred.backoff:
        return PodState.BACKOFF
    if uid not in waiting:
        return PodState.NOT_WAITING
    pod_class = waiting.class_of(uid)
    if pod_class is None:
        return PodState.NOT_READY
    return PodState.INADMISSIBLE if pod_class.reason else PodState.QUEUED
