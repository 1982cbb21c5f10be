"""What the binder writes on a claim, step by step, and how a claim says that it was written.

label and owner-pod   found                     steps
none                  anything without a label  set both
stale                 another queue's           remove both, set both: no label ever changes
stale                 the same queue's          set owner-pod
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_plugin.api import (
    OWNER_LEFT_AT_ANNOTATION,
    OWNER_POD_ANNOTATION,
    ClaimOwner,
)


@dataclass(frozen=True, slots=True)
class OwnerMarks:
    """Who owns a claim, as its metadata says it; "" for what is not there.

    Attributes:
        label: The queue.
        pod: The pod whose queue became owner.
    """

    label: str = ""
    pod: str = ""


NO_OWNER = OwnerMarks()


@dataclass(frozen=True, slots=True)
class ClaimState:
    """The parts of a claim that the binder goes by; "" where an answer does not have them.

    Attributes:
        consumers: UIDs of whatever the claim is reserved for.
    """

    uid: str
    resource_version: str
    marks: OwnerMarks
    consumers: frozenset[str]


def steps(claim: ClaimOwner) -> tuple[OwnerMarks, ...]:
    """The marks that the claim is given one after the other; empty where they stand already."""
    if claim.is_written:
        return ()
    wanted = wanted_marks(claim)
    if claim.label_found and claim.label_found != claim.queue:
        return (NO_OWNER, wanted)
    return (wanted,)


def wanted_marks(claim: ClaimOwner) -> OwnerMarks:
    return OwnerMarks(claim.queue, claim.owner_pod or claim.owner_pod_found)


def has_users_label(claim: ClaimOwner) -> bool:
    """Whether a user gave the claim its queue, so that it is not the binder's to change."""
    return bool(claim.label_found) and not claim.owner_pod_found


def marks_patch(marks: OwnerMarks, queue_label: str) -> dict[str, Any]:
    """A merge patch. With the owner goes the time that it left: it is of the owner before."""
    return {
        "metadata": {
            "labels": {queue_label: marks.label or None},
            "annotations": {
                OWNER_POD_ANNOTATION: marks.pod or None,
                OWNER_LEFT_AT_ANNOTATION: None,
            },
        }
    }


def left_patch(value: str | None) -> dict[str, Any]:
    """A merge patch of the time at which the owner left; None removes it."""
    return {"metadata": {"annotations": {OWNER_LEFT_AT_ANNOTATION: value}}}


def claim_state(obj: Mapping[str, Any], queue_label: str) -> ClaimState:
    """Read a ResourceClaim; what is odd counts as not there."""
    metadata = _an_object(obj.get("metadata"))
    reserved = _an_object(obj.get("status")).get("reservedFor")
    consumers = reserved if isinstance(reserved, list) else []
    return ClaimState(
        uid=_text(metadata.get("uid")),
        resource_version=_text(metadata.get("resourceVersion")),
        marks=OwnerMarks(
            _text(_an_object(metadata.get("labels")).get(queue_label)),
            _text(_an_object(metadata.get("annotations")).get(OWNER_POD_ANNOTATION)),
        ),
        consumers=frozenset(_text(_an_object(consumer).get("uid")) for consumer in consumers),
    )


def may_be_taken_back(state: ClaimState, claim: ClaimOwner, pod: str) -> bool:
    """Whether the marks are those that were written for this pod, and nobody else uses them."""
    is_same = state.uid == claim.uid and state.marks == wanted_marks(claim)
    return is_same and state.consumers <= {pod}


def _an_object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
