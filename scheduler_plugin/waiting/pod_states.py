"""The states of a waiting pod, and each move from one to another with what makes it.

All that the gate keeper does with a pod is a move of `MOVES`; `docs/reference/pod-states.md` is
generated from it, and tests hold each move against what the keeper does. A pod's state is not kept
anywhere: it follows from where the pod is.

    NotWaiting ─► NotReady ─► Queued ─► Inadmissible ─► Assumed ─► NotWaiting
                                                           └─► Backoff ─► in line again
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from scheduler_plugin.accounting.assumptions import LAPSE
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.away.away_pods import TRIED_SECONDS, AwayPods
from scheduler_plugin.waiting.lines.waiting_pods import WaitingPods


class PodState(StrEnum):
    """Where a pod stands that waits, at the gate or refused without one."""

    NOT_WAITING = "NotWaiting"
    NOT_READY = "NotReady"
    QUEUED = "Queued"
    INADMISSIBLE = "Inadmissible"
    ASSUMED = "Assumed"
    BACKOFF = "Backoff"


MEANINGS: Mapping[PodState, str] = {
    PodState.NOT_WAITING: (
        "It has no gate of Moorage's, and was not refused by kube-scheduler's last try; or it runs,"
        " has ended, or is being deleted."
    ),
    PodState.NOT_READY: (
        "It cannot be judged: it has other gates, a claim that it names is not there, or another"
        " scheduler is to place it."
    ),
    PodState.QUEUED: "It stands in line, and no pod of its line was judged and did not go.",
    PodState.INADMISSIBLE: (
        "It stands in line, and a pod of its line was judged and did not go: a rule refused it, or"
        " it left room for another pod, or too few devices were free. It is judged anew when that"
        " may have changed."
    ),
    PodState.ASSUMED: (
        "It was let go, and counts as bound: its gate is being removed, or a condition says that it"
        " fits. It stands in no line meanwhile."
    ),
    PodState.BACKOFF: "It failed after it was let go, and stands in no line for a while.",
}

_NOT_READY = "a claim that it names goes, or another gate is added"
_STOPS_WAITING = "it is bound, ends, is deleted, or its gate is removed"
_CAN_BE_JUDGED = "it can be judged, and pods that are alike were not refused"
_LIKE_OTHERS = "it can be judged, and stands in line with pods that were refused"
_STAYED = f"its gate is still there after {LAPSE.total_seconds():.0f} seconds"
_RESTED = "the back-off is over"

MOVES: Mapping[PodState, Mapping[PodState, str]] = {
    PodState.NOT_WAITING: {
        PodState.NOT_READY: "it appears, and cannot be judged yet",
        PodState.QUEUED: "it appears, or kube-scheduler tried it and it was refused",
        PodState.INADMISSIBLE: "the same, and pods that are alike were refused",
    },
    PodState.NOT_READY: {
        PodState.NOT_WAITING: _STOPS_WAITING,
        PodState.QUEUED: _CAN_BE_JUDGED,
        PodState.INADMISSIBLE: _LIKE_OTHERS,
    },
    PodState.QUEUED: {
        PodState.NOT_WAITING: _STOPS_WAITING,
        PodState.NOT_READY: _NOT_READY,
        PodState.INADMISSIBLE: "the first pod of its line is judged, and does not go",
        PodState.ASSUMED: "it is its turn, and it fits",
    },
    PodState.INADMISSIBLE: {
        PodState.NOT_WAITING: _STOPS_WAITING,
        PodState.NOT_READY: _NOT_READY,
        PodState.QUEUED: "its queue, or what it asks for, changes",
        PodState.ASSUMED: "it is its turn again, and it fits by now",
    },
    PodState.ASSUMED: {
        PodState.NOT_WAITING: "its gate is removed, or kube-scheduler tried it and it passed",
        PodState.NOT_READY: f"{_STAYED}; and it cannot be judged any more",
        PodState.QUEUED: _STAYED,
        PodState.INADMISSIBLE: f"{_STAYED}; and pods that are alike were refused",
        PodState.BACKOFF: (
            "the write fails; or without a gate, kube-scheduler tried it and it was refused, or did"
            f" not try it within {TRIED_SECONDS:.0f} seconds"
        ),
    },
    PodState.BACKOFF: {
        PodState.NOT_WAITING: _STOPS_WAITING,
        PodState.NOT_READY: f"{_RESTED}, and it cannot be judged any more",
        PodState.QUEUED: _RESTED,
        PodState.INADMISSIBLE: f"{_RESTED}, and pods that are alike were refused",
    },
}
"""By the state before and the state after, what makes the move; no other is made."""


def state_of(uid: PodUid, waiting: WaitingPods, away: AwayPods) -> PodState:
    """The state of a pod, of those that wait in line and those that are out of it for a while."""
    if uid in away.going:
        return PodState.ASSUMED
    if uid in away.resting:
        return PodState.BACKOFF
    if uid not in waiting:
        return PodState.NOT_WAITING
    line = waiting.line_of(uid)
    if line is None:
        return PodState.NOT_READY
    return PodState.INADMISSIBLE if line.reason else PodState.QUEUED
