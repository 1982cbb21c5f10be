"""What is decided of pods that wait, at the gate or refused, and what their conditions say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from kube.shapes.times import milli_time, timestamp
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.elsewhere import goes_elsewhere
from scheduler_plugin.judging.gangs import waiting_refusal
from scheduler_plugin.judging.missing_claims import going_claims, missing_claims
from scheduler_plugin.objects.names import QUOTA_GATE, PodUid, QueueName
from scheduler_plugin.objects.pods import PodView


class Wait(StrEnum):
    """Why a pod waits beside what its verdict says."""

    OTHER_SCHEDULER = "OtherScheduler"
    CLAIM_NOT_FOUND = "ClaimNotFound"
    OTHER_GATES = "OtherGates"
    ROOM_IS_LEFT = "RoomIsLeft"
    NO_DEVICE_FREE = "NoDeviceFree"
    UNSCHEDULABLE = "Unschedulable"

    @property
    def meaning(self) -> str:
        """What the pod waits for, in Markdown: a row of the documentation's table."""
        return _MEANINGS[self]


_MEANINGS: Mapping[Wait, str] = {
    Wait.OTHER_SCHEDULER: (
        "Nothing here: it asks for devices that queues count, and its `spec.schedulerName` is"
        " another scheduler's. It stands in no line, no pod is evicted for it, and its gate stays:"
        " create it anew."
    ),
    Wait.CLAIM_NOT_FOUND: (
        "A ResourceClaim that it names, or one that is still to be made of a template; or one that"
        " is being deleted, to be gone and made again."
    ),
    Wait.OTHER_GATES: (
        "Other scheduling gates, which other controllers remove. Only then does it stand in line."
    ),
    Wait.ROOM_IS_LEFT: (
        "A larger pod that came earlier, for which room is left: it would fit itself."
    ),
    Wait.NO_DEVICE_FREE: (
        "Devices: all rules pass, and fewer devices that would do are free than it needs. A pod"
        " that goes with others of its PodGroup has a condition of this reason where too few are"
        " free for all of them; any other pod has none, and only `kubectl moorage why`, `simulate`"
        " and the dashboard say so."
    ),
    Wait.UNSCHEDULABLE: (
        "A node: all rules pass, and kube-scheduler found no node for it when it tried last. Its"
        " condition `PodScheduled` says why; `kubectl moorage why`, `simulate` and the dashboard"
        " say this reason."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRemoval:
    """A pod whose gate is to be removed.

    Attributes:
        queue: Its queue; "" where it asks for nothing that queues count.
    """

    namespace: str
    name: str
    uid: PodUid
    queue: QueueName


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A pod without the gate that was refused and fits: kube-scheduler is to try it again."""

    namespace: str
    name: str
    uid: PodUid
    queue: QueueName


LetGo = GateRemoval | Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCondition:
    """What a pod's condition is to say.

    Attributes:
        since: Since when it is so, in RFC 3339: a pod waits from its creation on.
        fits: Whether the condition is True.
    """

    namespace: str
    name: str
    uid: PodUid
    since: str
    reason: str
    message: str
    fits: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A pod's place in line: the first is 1. It says nothing about when its turn comes."""

    queue: QueueName
    number: int
    waiting: int

    def __str__(self) -> str:
        return f'{self.number} of {self.waiting} pods that wait in queue "{self.queue}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPod:
    """What is answered about a waiting pod, as things are now.

    Attributes:
        place: None while it is in no line: it waits for more than its quota.
        reason: Why it does not go; "" where it is about to.
    """

    namespace: str
    name: str
    queue: QueueName
    place: Place | None
    reason: str
    message: str


class KnownWaits(Protocol):
    """What is known of the pods that wait, by whatever decides about them."""

    def why_not_told(self) -> str:
        """Why it is not known here which pods wait; "" where it is."""

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        """What is known of a waiting pod now; a sentence where it is none that waits."""


def waiting_pod(
    pod: PodView, place: Place | None, world: WorldView, *, kept: str = ""
) -> WaitingPod:
    """Judge a pod that waits; its condition may be older, and is written once for each reason.

    `kept` says for whom it leaves room although it fits.
    """
    reason, message = _why(pod, world, kept)
    return WaitingPod(
        namespace=pod.namespace,
        name=pod.name,
        queue=world.facts.queue_of(pod),
        place=place,
        reason=reason,
        message=message or "It fits, and goes when its turn comes.",
    )


def has_stale_condition(pod: PodView) -> bool:
    """Whether a condition says that a pod waits which does not, as it is out of the gate."""
    return bool(pod.admission) and QUOTA_GATE not in pod.gates and not pod.deleting


def gate_condition(pod: PodView, world: WorldView, *, kept: str = "") -> GateCondition | None:
    """What a waiting pod is to be told; None where it fits, and its turn will come."""
    reason, message = _why(pod, world, kept)
    return condition_of(pod, reason, message) if reason else None


def condition_of(pod: PodView, reason: str, message: str) -> GateCondition:
    """A pod is told why it waits."""
    return GateCondition(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        since=pod.created,
        reason=reason,
        message=message,
    )


def fits_condition(pod: PodView, now: datetime) -> GateCondition:
    """What a pod is told that was refused and fits by now, so that it is tried again.

    A write that changes nothing is no change: the moment makes each another one.
    """
    return GateCondition(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        since=timestamp(now),
        reason="Fits",
        message=f"It was refused and fits since {milli_time(now)}: it is about to be tried again.",
        fits=True,
    )


def _why(pod: PodView, world: WorldView, kept: str) -> tuple[str, str]:
    if why_not := goes_elsewhere(pod, world.facts):
        return Wait.OTHER_SCHEDULER, f"It waits in no line. {why_not} Create the pod anew."
    others = [gate for gate in pod.gates if gate != QUOTA_GATE]
    if others:
        named = ", ".join(f'"{gate}"' for gate in others)
        return Wait.OTHER_GATES, f"It waits in line once its other gates are gone: {named}."
    if missing := missing_claims(pod, world.facts):
        return Wait.CLAIM_NOT_FOUND, _why_missing(pod, missing, world)
    refused = waiting_refusal(pod, world)
    if refused is not None:
        return refused.reason, refused.sentence
    return (Wait.ROOM_IS_LEFT, kept) if kept else ("", "")


def _why_missing(pod: PodView, missing: Sequence[str], world: WorldView) -> str:
    for going in going_claims(pod, world.facts.claims_of(pod)):
        return f"It waits until {going}, which is being deleted, is gone and made again."
    named = ", ".join(f"{pod.namespace}/{name}" for name in missing)
    return f"It waits for a claim that is not there yet: {named}."
