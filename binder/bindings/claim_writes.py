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
    ClaimCleared,
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
    """The parts of a claim that the binder goes by.

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
    """Read a ResourceClaim."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return ClaimState(
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        marks=OwnerMarks(labels.get(queue_label, ""), annotations.get(OWNER_POD_ANNOTATION, "")),
        consumers=frozenset(each["uid"] for each in status.get("reservedFor") or ()),
    )


def may_be_taken_back(state: ClaimState, claim: ClaimOwner, pod: str) -> bool:
    """Whether the marks are those that were written for this pod, and nobody else uses them."""
    is_same = state.uid == claim.uid and state.marks == wanted_marks(claim)
    return is_same and state.consumers <= {pod}


def is_as_judged(obj: Mapping[str, Any], cleared: ClaimCleared) -> bool:
    """Whether the claim is still the one, in the version, that was decided about."""
    metadata = obj["metadata"]
    found = metadata["uid"], metadata["resourceVersion"]
    return found == (cleared.uid, cleared.resource_version)


def cleared_status(obj: Mapping[str, Any], cleared: ClaimCleared) -> dict[str, Any]:
    """A patch of the status: without those that are gone and, with the last, the allocation.

    Kubernetes' own controller writes the same. What devices said of themselves (`status.devices`)
    goes with the allocation: the API server sees to that.
    """
    if cleared.deallocate:
        return {"status": {"reservedFor": None, "allocation": None}}
    reserved = (obj.get("status") or {}).get("reservedFor") or []
    left = [consumer for consumer in reserved if consumer.get("uid") not in cleared.gone]
    return {"status": {"reservedFor": left}}
