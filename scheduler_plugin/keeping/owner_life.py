"""The end of an owner that the binder wrote: label and annotations are to be removed.

It ends with the allocation, and so does one that outlived an allocation unnoticed: neither the pod
it was written for is a consumer, nor has any consumer a node (`owners.is_stale`). Otherwise one
queue would run once and others for ever after on its quota. With `ownerLifetime: Claim` it never
ends. An owner that a user named at creation names no pod, and never ends either.

Left alone is whatever a binding may be about to rely on, and what is not known well enough:

    a decision in flight     its binding writes the owner itself
    an unknown consumer      it is deleted, and the controller that takes it out of the claim is
                             still to come; or it is too new to be known, and may have a node
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.accounting.owners import is_stale
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import ClaimUid


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedOwner:
    """A claim whose owner ended.

    Attributes:
        resource_version: Of the claim as it was judged; the precondition of the removal.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str


def ended_owner(uid: ClaimUid, world: World) -> EndedOwner | None:
    """What is to be removed from a claim; None where there is nothing, or not yet."""
    claim = world.facts.claim(uid)
    if claim is None or not claim.owner_pod or not _has_ended(claim, world):
        return None
    return EndedOwner(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.resource_version,
    )


def _has_ended(claim: ClaimView, world: World) -> bool:
    if not is_stale(claim, world.facts) or world.assumptions.pods(claim.uid):
        return False
    known = sum(1 for _ in world.facts.consumers(claim))
    return known == len(claim.reserved_for) and (not claim.is_allocated or bool(claim.label))
