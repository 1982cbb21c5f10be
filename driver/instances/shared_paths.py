"""The path by which a shared device is offered: an annotation of its Instance tells all nodes.

    device plugin ────────────── annotated ─────────────► DRA: claims get uses without held slots
          ▲                                                │
          └── annotated ◄── no claim has it any more ◄─── withdrawn

Nodes may have different paths, for example while they are updated one after the other, and each
node gives slots away by itself. So the object decides. A node writes a slot only at the version
that it has read, and never into an Instance that says `dra`. The shared driver publishes an
Instance only after the Instance says `dra`. The slots that are held at that moment are known, and
their number can only fall.

A node with the path DRA creates its Instances with the annotation, which saves a write for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from driver.api import OFFERED_THROUGH
from driver.instances.slots.slots import InstanceSlots
from driver.instances.unseen_instances import (
    ObservedInstance,
    PatchInstance,
    may_be_claimed,
    patch_of,
)
from driver.offer_paths import OfferPath


def plan_paths(
    observed_instances: Iterable[ObservedInstance],
    wanted: OfferPath,
    claimed: Collection[str] | None,
) -> tuple[PatchInstance, ...]:
    """The writes that offer shared Instances by the wanted path.

    Args:
        observed_instances: All Instances.
        wanted: The path of the shared driver.
        claimed: Attribute values of the shared Instances that claims have or may get; None while
            they are not known.
    """
    found = []
    for observed in observed_instances:
        slots = observed.slots
        if not observed.is_shared or slots.deleted or slots.claimable == (wanted is OfferPath.DRA):
            continue
        if wanted is OfferPath.DRA or not may_be_claimed(slots, claimed):
            found.append(offer_through(slots, wanted))
    return tuple(found)


def offer_through(slots: InstanceSlots, path: OfferPath) -> PatchInstance:
    """The patch of the annotation that says by which path an Instance is offered."""
    value = OfferPath.DRA.value if path is OfferPath.DRA else None
    return patch_of(slots, {"annotations": {OFFERED_THROUGH: value}})
