"""What people are told about claims: Events on the claim, and on the pods that have to go."""

from __future__ import annotations

from typing import Protocol

from kube.api import Event, EventType, ObjectReference
from scheduler_plugin.api import (
    Attribution,
    ClaimCleared,
    ClaimUid,
    EvictForeign,
    LostQueue,
    OwnerLeftAt,
    PodToEvict,
)


class _NamesAClaim(Protocol):
    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> ClaimUid: ...


def attributed(found: Attribution) -> Event:
    return _of_claim(found.owner, "OrphanAttributed", "Attribute", found.sentence)


def owner_left(found: OwnerLeftAt) -> Event:
    return _of_claim(found, "OwnerLeft", "NoteTime", found.sentence)


def cleared(found: ClaimCleared) -> Event:
    claim = f"ResourceClaim {found.namespace}/{found.name}"
    if found.deallocate:
        note = f"{claim} was allocated and nobody used it: its allocation was cleared."
    else:
        note = f"{claim} was reserved for pods that ended: {len(found.gone)} were taken out."
    return _of_claim(found, "LeftOverCleared", "Clear", note)


def foreign_evicted(found: EvictForeign) -> Event:
    return _of_claim(found, "ForeignPodsEvicted", "Evict", found.why)


def held_back(found: EvictForeign, why: str) -> Event:
    note = f"{found.why} {why}"
    return _of_claim(found, "EvictionHeldBack", "Evict", note, EventType.WARNING)


def queue_lost(found: LostQueue) -> Event:
    return _of_claim(found.claim, "QueueLost", "Charge", str(found), EventType.WARNING)


def pod_evicted(pod: PodToEvict, found: EvictForeign) -> Event:
    """About the pod; related is the claim."""
    return Event(
        regarding=ObjectReference(
            api_version="v1", kind="Pod", name=pod.name, namespace=pod.namespace, uid=pod.uid
        ),
        type=EventType.NORMAL,
        reason="ForeignPodEvicted",
        action="Evict",
        note=found.why,
        related=_reference(found),
    )


def _of_claim(
    claim: _NamesAClaim,
    reason: str,
    action: str,
    note: str,
    kind: EventType = EventType.NORMAL,
) -> Event:
    return Event(regarding=_reference(claim), type=kind, reason=reason, action=action, note=note)


def _reference(claim: _NamesAClaim) -> ObjectReference:
    return ObjectReference(
        api_version="resource.k8s.io/v1",
        kind="ResourceClaim",
        name=claim.name,
        namespace=claim.namespace,
        uid=claim.uid,
    )
