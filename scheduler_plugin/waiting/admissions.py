"""Decisions about waiting pods, at the gate or refused, and the conditions that report them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kube.shapes.times import milli_time, timestamp
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import waiting_refusal
from scheduler_plugin.judging.missing_claims import missing_claims, terminating_claims
from scheduler_plugin.judging.other_schedulers import why_other_scheduler
from scheduler_plugin.objects.names import QUOTA_GATE, PodUid, QueueName
from scheduler_plugin.objects.pods import PodView


class WaitReason(StrEnum):
    """Reasons to wait that are not reasons of a verdict."""

    OTHER_SCHEDULER = "OtherScheduler"
    CLAIM_NOT_FOUND = "ClaimNotFound"
    OTHER_GATES = "OtherGates"
    ROOM_IS_LEFT = "RoomIsLeft"
    NO_DEVICE_FREE = "NoDeviceFree"
    UNSCHEDULABLE = "Unschedulable"

    @property
    def meaning(self) -> str:
        """What the pod waits for, in Markdown, for a row of the documentation's table."""
        return _MEANINGS[self]


_MEANINGS: Mapping[WaitReason, str] = {
    WaitReason.OTHER_SCHEDULER: (
        "Nothing here: it requests devices that queues count, and its `spec.schedulerName` names"
        " another scheduler. It is in no queue, no pod is evicted for it, and its gate stays:"
        " create it anew."
    ),
    WaitReason.CLAIM_NOT_FOUND: (
        "A ResourceClaim that it names and that does not exist: it is to be created, from a"
        " template perhaps; or it is terminating, and is to be created again."
    ),
    WaitReason.OTHER_GATES: (
        "Other scheduling gates, which other controllers remove. It joins the queue after that."
    ),
    WaitReason.ROOM_IS_LEFT: (
        "A larger pod that came earlier and for which room is left. It would fit itself."
    ),
    WaitReason.NO_DEVICE_FREE: (
        "Devices: all rules pass, and it needs more matching devices than are free. A pod of a"
        " gang has a condition of this reason where too few are free for the whole gang. Any other"
        " pod has none; `kubectl moorage why`, `simulate` and the dashboard show this reason."
    ),
    WaitReason.UNSCHEDULABLE: (
        "A node: all rules pass, and kube-scheduler found no node in its last attempt. The"
        " condition `PodScheduled` says why; `kubectl moorage why`, `simulate` and the dashboard"
        " show this reason."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRemoval:
    """A pod whose gate is to be removed.

    Attributes:
        queue: Its queue; "" where it requests nothing that queues count.
    """

    namespace: str
    name: str
    uid: PodUid
    queue: QueueName


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A refused pod without a gate that fits by now: kube-scheduler is to try it again."""

    namespace: str
    name: str
    uid: PodUid
    queue: QueueName


Admission = GateRemoval | Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCondition:
    """The condition to write on a pod.

    Attributes:
        since: The transition time, in RFC 3339: a pod waits from its creation on.
        fits: Whether the condition's status is True.
    """

    namespace: str
    name: str
    uid: PodUid
    since: str
    reason: str
    message: str
    fits: bool = False


@dataclass(frozen=True, slots=True)
class Position:
    """A pod's position in its queue; the head has 1. It does not tell when the pod is judged."""

    queue: QueueName
    number: int
    waiting: int

    def __str__(self) -> str:
        return f'{self.number} of {self.waiting} pods that wait in queue "{self.queue}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPod:
    """The state of a waiting pod now.

    Attributes:
        place: None while it is in no queue: it waits for more than its quota.
        reason: Why it is not admitted; "" where it is about to be.
    """

    namespace: str
    name: str
    queue: QueueName
    place: Position | None
    reason: str
    message: str


class WaitingPodQueries(Protocol):
    """Answers about waiting pods, from the component that decides about them."""

    def why_unknown(self) -> str:
        """Why this process does not know which pods wait; "" where it does."""

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        """The state of a waiting pod now; a sentence where the pod does not wait."""


def waiting_pod(
    pod: PodView, place: Position | None, world: WorldView, *, yields_to: str = ""
) -> WaitingPod:
    """Judge a waiting pod anew. Its condition may be older: one is written for each new reason.

    `yields_to` says for which pod it leaves room although it fits.
    """
    reason, message = _why(pod, world, yields_to)
    return WaitingPod(
        namespace=pod.namespace,
        name=pod.name,
        queue=world.facts.queue_of(pod),
        place=place,
        reason=reason,
        message=message or "It fits, and is admitted once it is the head of its queue.",
    )


def has_stale_condition(pod: PodView) -> bool:
    """Whether a pod without the gate still has a condition that says that it waits."""
    return bool(pod.admission) and QUOTA_GATE not in pod.gates and not pod.deleting


def gate_condition(pod: PodView, world: WorldView, *, yields_to: str = "") -> GateCondition | None:
    """The condition to write on a waiting pod; None where it fits and is to be admitted."""
    reason, message = _why(pod, world, yields_to)
    return condition_of(pod, reason, message) if reason else None


def condition_of(pod: PodView, reason: str, message: str) -> GateCondition:
    """The condition that says why a pod waits."""
    return GateCondition(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        since=pod.created,
        reason=reason,
        message=message,
    )


def fits_condition(pod: PodView, now: datetime) -> GateCondition:
    """The condition of a refused pod that fits by now, so that kube-scheduler tries it again.

    The message holds the time: a write that changes nothing would cause no event.
    """
    return GateCondition(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        since=timestamp(now),
        reason="Fits",
        message=f"It was refused and fits since {milli_time(now)}: kube-scheduler tries it again.",
        fits=True,
    )


def _why(pod: PodView, world: WorldView, yields_to: str) -> tuple[str, str]:
    if why_not := why_other_scheduler(pod, world.facts):
        return WaitReason.OTHER_SCHEDULER, f"The pod is in no queue. {why_not} Create the pod anew."
    others = [gate for gate in pod.gates if gate != QUOTA_GATE]
    if others:
        named = ", ".join(f'"{gate}"' for gate in others)
        return (
            WaitReason.OTHER_GATES,
            f"The pod joins its queue after its other gates are gone: {named}.",
        )
    if missing := missing_claims(pod, world.facts):
        return WaitReason.CLAIM_NOT_FOUND, _why_missing(pod, missing, world)
    refused = waiting_refusal(pod, world)
    if refused is not None:
        return refused.reason, refused.sentence
    return (WaitReason.ROOM_IS_LEFT, yields_to) if yields_to else ("", "")


def _why_missing(pod: PodView, missing: Sequence[str], world: WorldView) -> str:
    for terminating in terminating_claims(pod, world.facts.claims_of(pod)):
        return (
            f"The pod waits until {terminating}, which is terminating, is gone and created again."
        )
    named = ", ".join(f"{pod.namespace}/{name}" for name in missing)
    return f"The pod waits for a claim that does not exist yet: {named}."
