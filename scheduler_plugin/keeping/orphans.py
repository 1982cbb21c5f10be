"""Orphans: claims that are used and that nobody owns, and to whom they are attributed.

They come from before Moorage was installed, or from another scheduler: a binding of Moorage's own
writes the owner first. So a claim whose consumers all wait to be bound is none, nor is one that a
decision in flight is about; and as long as a consumer is not known the oldest is not either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler_plugin.accounting.owners import orphan_owner
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.bindings import ClaimOwner
from scheduler_plugin.objects.names import ClaimUid


@dataclass(frozen=True, slots=True)
class Attribution:
    """An orphan and its owner from now on.

    Attributes:
        owner: What the binder is to write.
        sentence: For the Event.
    """

    owner: ClaimOwner
    sentence: str


def attribution(uid: ClaimUid, world: World) -> Attribution | None:
    """Whom an orphan is attributed to; None for one that stays nobody's, and for other claims."""
    claim, entry = world.facts.claim(uid), world.ledger.claim(uid)
    if claim is None or entry is None or not entry.orphan or uid in world.assumptions:
        return None
    if sum(1 for _ in world.facts.consumers(claim)) < len(claim.reserved_for):
        return None
    found = orphan_owner(claim, world.facts)
    if found is None or found.pod is None:
        return None
    owner = ClaimOwner(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.resource_version,
        queue=found.queue,
        owner_pod=found.pod,
        label_found=claim.label,
        owner_pod_found=claim.owner_pod,
    )
    pod = world.facts.pod(found.pod)
    sentence = (
        f'{claim} was in use and belonged to no queue. It belongs to queue "{found.queue}" now, the'
        f" queue of {pod}, the oldest of its pods that has one."
    )
    return Attribution(owner, sentence)


def attributions(world: World) -> Iterator[Attribution]:
    """All orphans that are to be attributed."""
    for uid in world.ledger.orphans():
        if (found := attribution(uid, world)) is not None:
            yield found
