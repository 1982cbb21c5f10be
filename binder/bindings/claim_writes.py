"""The writes on a claim, step by step, and how to read from a claim what was written.

label and owner-pod   found                     steps
none                  anything without a label  set both
stale                 another queue's           remove both, set both: a label never changes
stale                 the same queue's          set owner-pod
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kube.shapes.claims import Claim
from kube.shapes.metadata import NO_METADATA, metadata_of
from kube.shapes.reading import JsonObject, own_text, read_as
from scheduler_plugin.cleanup.api import ClaimCleared
from scheduler_plugin.objects.api import ClaimOwner
from scheduler_plugin.objects.names import (
    CHARGED_ANNOTATION,
    OWNER_LEFT_AT_ANNOTATION,
    OWNER_POD_ANNOTATION,
)


@dataclass(frozen=True, slots=True)
class OwnerMarks:
    """The owner of a claim in its metadata; "" for what is absent.

    Attributes:
        label: The queue.
        pod: UID of the pod whose queue became the owner.
    """

    label: str = ""
    pod: str = ""


NO_OWNER = OwnerMarks()


@dataclass(frozen=True, slots=True)
class ClaimState:
    """The parts of a claim that the binder reads.

    Attributes:
        consumers: UIDs of all consumers in `reservedFor`.
    """

    uid: str
    resource_version: str
    marks: OwnerMarks
    consumers: frozenset[str]


def steps(claim: ClaimOwner) -> tuple[OwnerMarks, ...]:
    """The marks to write, one after the other; empty if the claim has them already."""
    if claim.is_written:
        return ()
    wanted = wanted_marks(claim)
    if claim.label_found and claim.label_found != claim.queue:
        return (NO_OWNER, wanted)
    return (wanted,)


def wanted_marks(claim: ClaimOwner) -> OwnerMarks:
    return OwnerMarks(claim.queue, claim.owner_pod or claim.owner_pod_found)


def has_users_label(claim: ClaimOwner) -> bool:
    """Whether a user wrote the claim's queue label, which the binder then never changes."""
    return bool(claim.label_found) and not claim.owner_pod_found


def marks_patch(marks: OwnerMarks, queue_label: str) -> dict[str, Any]:
    """A merge patch of the marks. What else is noted on the claim is of the former owner."""
    return {
        "metadata": {
            "labels": {queue_label: marks.label or None},
            "annotations": {
                OWNER_POD_ANNOTATION: marks.pod or None,
                OWNER_LEFT_AT_ANNOTATION: None,
                CHARGED_ANNOTATION: None,
            },
        }
    }


def annotation_patch(name: str, value: str | None) -> dict[str, Any]:
    """A merge patch of one annotation; None removes it."""
    return {"metadata": {"annotations": {name: value}}}


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


def may_be_rolled_back(state: ClaimState, claim: ClaimOwner, pod: str) -> bool:
    """Whether the marks were written for this pod, and the claim has no other consumer.

    A PodGroup is another consumer: its other pods may rely on the owner, and have its queue.
    `stale_claims` removes the owner with the reservation.
    """
    is_same = state.uid == claim.uid and state.marks == wanted_marks(claim)
    return is_same and state.consumers <= {pod}


def is_as_judged(obj: JsonObject, cleared: ClaimCleared) -> bool:
    """Whether the claim still has the UID and the version that were judged."""
    found = metadata_of(obj)
    return (found.uid, found.resource_version) == (cleared.uid, cleared.resource_version)


def cleared_status(obj: JsonObject, cleared: ClaimCleared) -> dict[str, Any]:
    """A patch of the status without stale consumers and, after the last, without allocation.

    kube-controller-manager writes the same. The API server removes `status.devices` together with
    the allocation.
    """
    if cleared.deallocate:
        return {"status": {"reservedFor": None, "allocation": None}}
    reserved = (obj.get("status") or {}).get("reservedFor") or []
    stale = {*cleared.gone, *(group.uid for group in cleared.groups)}
    remaining = [consumer for consumer in reserved if consumer.get("uid") not in stale]
    return {"status": {"reservedFor": remaining}}
