"""By which path a device that several nodes see is offered: its Instance says so, to all of them.

    device plugin ──────────────── said ────────────────► DRA: claims get what no slot is held of
          ▲                                                │
          └──── said ◄──── no claim has it any more ◄──── withdrawn

The nodes may be on different paths, as while they are updated one after the other, and each gives
slots away for itself. So it is the object that decides: a node writes a slot only into the version
that it has seen, and into none that says `dra`; and the shared driver publishes nothing of an
Instance before it says so. What is held at that moment is known then, and can only become less.

A node on the path of DRA makes its Instances so from the start, which spares a write for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from driver.api import OFFERED_THROUGH
from driver.instances.slots.slots import InstanceSlots
from driver.instances.unseen import InstanceSight, PatchInstance, may_be_claimed, patch_of
from driver.offer_paths import OfferPath


def plan_paths(
    sights: Iterable[InstanceSight], wanted: OfferPath, claimed: Collection[str] | None
) -> tuple[PatchInstance, ...]:
    """What to write so that shared Instances are offered by the wanted path.

    Args:
        sights: All Instances.
        wanted: The path of the shared driver.
        claimed: Attribute values of the shared Instances that claims may have, or may come to
            have; None while that is not known.
    """
    found = []
    for sight in sights:
        slots = sight.slots
        if not sight.is_shared or slots.deleted or slots.claimable == (wanted is OfferPath.DRA):
            continue
        if wanted is OfferPath.DRA or not may_be_claimed(slots, claimed):
            found.append(offer_through(slots, wanted))
    return tuple(found)


def offer_through(slots: InstanceSlots, path: OfferPath) -> PatchInstance:
    """Say by which path an Instance is offered from now on."""
    value = OfferPath.DRA.value if path is OfferPath.DRA else None
    return patch_of(slots, {"annotations": {OFFERED_THROUGH: value}})
