"""Requests to bind admitted pods, and their outcomes: the types between plugin and binder.

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
    """The owner of one claim of a BindRequest; it is the same in all requests with the claim.

    Attributes:
        resource_version: The version of the claim that was judged; the precondition of a write.
        queue: The owner.
        owner_pod: The pod whose queue became the owner; None if the claim's label says the owner.
        label_found: The label of the judged version; "" for none. If it differs from the owner, it
            is stale and removed first, since a label never changes.
        owner_pod_found: The annotation of the judged version; "" for none.
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
        """Whether the owner is written on the claim already."""
        return self.owner_pod is None or (self.label_found, self.owner_pod_found) == (
            self.queue,
            self.owner_pod,
        )


def claim_owner(claim: ClaimView, queue: QueueName, owner_pod: PodUid | None) -> ClaimOwner:
    """The owner of a claim, with the marks and the version of the judged claim."""
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
    """An admitted binding that the binder carries out.

    Attributes:
        queue: The pod's queue, which is written with the binding; "" if nothing is accounted.
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
    """The pod is bound to the requested node."""


@dataclass(frozen=True, slots=True)
class ClaimsChanged:
    """Another client wrote one of the claims first. Nothing is bound; the pod is judged again."""

    claim: ClaimOwner


@dataclass(frozen=True, slots=True)
class BindFailed:
    """The pod is not bound, as far as is known.

    Attributes:
        why: A sentence for users.
        is_certain: Whether it is certain that the pod was not bound and no owner was left behind.
    """

    why: str
    is_certain: bool


Outcome = Bound | BindFailed


class BinderProtocol(Protocol):
    """The interface of the binder."""

    async def write_owners(self, request: BindRequest) -> ClaimsChanged | BindFailed | None:
        """Write the owner on each claim that lacks it; None once all claims have it."""

    async def roll_back(self, request: BindRequest) -> bool:
        """Remove the owners that were written for a pod that will not be bound.

        An owner stays if another pod relies on it, or it was changed meanwhile. Returns whether it
        is certain that all others are removed.
        """

    async def bind(self, request: BindRequest) -> Outcome:
        """Create the binding; if that certainly failed, remove the owners that were written."""


class Fence(Protocol):
    """Keeps a process that may have lost its Lease from writing."""

    def why_not(self, seconds: float) -> str:
        """Why a write of this duration may not begin now, as a sentence; "" if it may."""


class FencedError(Exception):
    """Raised if a write may not begin, since the Lease may be lost before it ends."""


def check_fence(fence: Fence, seconds: float) -> None:
    """Raise FencedError if a write of this duration may not begin now."""
    if why := fence.why_not(seconds):
        raise FencedError(why)
