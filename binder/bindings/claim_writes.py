"""What the binder writes on a claim, step by step, and how a claim says that it was written.

label and owner-pod   found                     steps
none                  anything without a label  set both
stale                 another queue's           remove both, set both: no label ever changes
stale                 the same queue's          set owner-pod
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kube.shapes.claims import Claim
from kube.shapes.metadata import NO_METADATA, metadata_of
from kube.shapes.reading import JsonObject, own_text, read_as
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


def claim_state(obj: JsonObject | Claim, queue_label: str) -> ClaimState:
    """Read a ResourceClaim; raises UnreadableError."""
    claim = read_as(Claim, obj)
    metadata = claim.metadata or NO_METADATA
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    return ClaimState(
        uid=own_text(metadata.uid, "metadata.uid"),
        resource_version=own_text(metadata.resource_version, "metadata.resourceVersion"),
        marks=OwnerMarks(labels.get(queue_label, ""), annotations.get(OWNER_POD_ANNOTATION, "")),
        consumers=frozenset(each.uid for each in claim.consumers),
    )


def may_be_taken_back(state: ClaimState, claim: ClaimOwner, pod: str) -> bool:
    """Whether the marks are those that were written for this pod, and nobody else uses them."""
    is_same = state.uid == claim.uid and state.marks == wanted_marks(claim)
    return is_same and state.consumers <= {pod}


def is_as_judged(obj: JsonObject, cleared: ClaimCleared) -> bool:
    """Whether the claim is still the one, in the version, that was decided about."""
    found = metadata_of(obj)
    return (found.uid, found.resource_version) == (cleared.uid, cleared.resource_version)


def cleared_status(obj: JsonObject, cleared: ClaimCleared) -> dict[str, Any]:
    """A patch of the status: without those that are gone and, with the last, the allocation.

    Kubernetes' own controller writes the same. What devices said of themselves (`status.devices`)
    goes with the allocation: the API server sees to that.
    """
    if cleared.deallocate:
        return {"status": {"reservedFor": None, "allocation": None}}
    reserved = (obj.get("status") or {}).get("reservedFor") or []
    left = [consumer for consumer in reserved if consumer.get("uid") not in cleared.gone]
    return {"status": {"reservedFor": left}}
