"""Bindings that were admitted, and what became of them: the shapes between plugin and binder.

kube-scheduler ─Bind─► verdict ─BindRequest─► binder ─Outcome─► answer
└────── judge again ──────┘ ClaimsChanged
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOwner:
    """What a BindRequest says of one claim, so that even a foreign pod that binds first agrees.

    Attributes:
        resource_version: Of the claim as it was judged; the precondition of a write.
        queue: The owner.
        owner_pod: The pod whose queue became owner; None where the claim's label stands already.
        label_found: The label as it was judged; "" for none. One that differs from the owner is
            stale: it is removed first, since no label ever changes.
        owner_pod_found: The annotation as it was judged; "" for none.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str
    queue: QueueName
    owner_pod: PodUid | None
    label_found: QueueName
    owner_pod_found: PodUid

    @property
    def is_written(self) -> bool:
        """Whether the claim says so already."""
        return self.owner_pod is None or (self.label_found, self.owner_pod_found) == (
            self.queue,
            self.owner_pod,
        )


def claim_owner(claim: ClaimView, queue: QueueName, owner_pod: PodUid | None) -> ClaimOwner:
    """The owner of a claim that was judged as it is here."""
    return ClaimOwner(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.resource_version,
        queue=queue,
        owner_pod=owner_pod,
        label_found=claim.label,
        owner_pod_found=claim.owner_pod,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BindRequest:
    """A binding that was admitted: what the binder carries out.

    Attributes:
        queue: The pod's queue, to be written with the binding; "" where nothing is accounted.
        claims: All accounted claims of the pod, in the order of its spec.
    """

    namespace: str
    name: str
    uid: PodUid
    node: str
    queue: QueueName
    claims: tuple[ClaimOwner, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """The pod is bound to the node that was asked for."""


@dataclass(frozen=True, slots=True)
class ClaimsChanged:
    """Somebody else wrote one of the claims first. Nothing is bound: read it and judge again."""

    claim: ClaimOwner


@dataclass(frozen=True, slots=True)
class BindFailed:
    """The pod is not bound as far as is known.

    Attributes:
        why: A sentence for people.
        is_certain: Whether it is certain that nothing was bound and nothing is left of it.
    """

    why: str
    is_certain: bool


Outcome = Bound | BindFailed


class CarriesOut(Protocol):
    """The binder, as the plugin knows it."""

    async def write_owners(self, request: BindRequest) -> ClaimsChanged | BindFailed | None:
        """Write the owner on each claim that does not say it yet; None when all of them do."""

    async def take_back(self, request: BindRequest) -> bool:
        """Remove the owners that were written for a pod which is not going to be bound after all.

        Those stay that somebody else relies on, or that say something else by now. False where it
        is not certain that none is left.
        """

    async def bind(self, request: BindRequest) -> Outcome:
        """Create the binding; where that failed for certain, take back what was written."""


class Fence(Protocol):
    """What keeps a process that may have lost its Lease from writing."""

    def why_not(self, seconds: float) -> str:
        """Why a write that takes so long may not begin now, as a sentence; "" where it may."""


class FencedError(Exception):
    """Raised where a write may not begin, since the Lease may be lost before it ends."""


def check_fence(fence: Fence, seconds: float) -> None:
    """Raise FencedError where a write that takes so long may not begin now."""
    if why := fence.why_not(seconds):
        raise FencedError(why)
