"""The users of devices by claim, and the room on a device once pods are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.held_texts import names_of
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.placement.offers import Offer
from scheduler_plugin.reclaiming.victims.effects import has_no_user_without


class DeviceUse:
    """The users of devices, by claims and holds.

    A device that is held for another pod counts as used, free or not.
    """

    def __init__(
        self,
        world: WorldView,
        holds: Iterable[Hold],
        stuck: Collection[PodUid],
        own: Iterable[Hold] = (),
    ) -> None:
        """Create.

        Args:
            world: The known objects.
            holds: The holds of other pods.
            stuck: Pods that are terminating, and do not end.
            own: The holds of the pod to place: another claim for these devices is refused.
        """
        self._own = frozenset[DeviceId]().union(*(names_of(hold.devices) for hold in own))
        self._world = world
        self._stuck = stuck
        self._reserved = Counter[DeviceId]()
        for hold in holds:
            self._reserved.update(dict(hold.devices))

    def is_reserved(self, offer: Offer, slots: int) -> bool:
        """Whether holds of other pods leave fewer slots than `slots`."""
        held = self._reserved[offer.device]
        return bool(held) and (offer.slots is None or held + slots > offer.slots)

    def has_room(
        self, offer: Offer, slots: int, gone: Collection[PodUid] | None, taken: int = 0
    ) -> bool:
        """Whether a device has `slots` free, or is free as a whole, with these pods gone.

        Terminating pods count as gone too; `gone` None is for what is free now. `taken` slots are
        in use in addition.
        """
        taken += self._reserved[offer.device]
        stay = [
            result.slots
            for claim in self._world.facts.claims_with(offer.device)
            if gone is None or not self._is_left(claim, gone)
            for result in claim.results or ()
            if result.device_id == offer.device and not result.admin_access
        ]
        if offer.slots is None:
            return not stay and not taken
        used = sum(offer.slots if n is None else n for n in stay)
        return used + taken + slots <= offer.slots

    def _is_left(self, claim: ClaimView, gone: Collection[PodUid]) -> bool:
        """Whether a claim ends with these pods; a claim without a reservation does not.

        An exception is a claim for a held device: Bind refuses it.
        """
        if not claim.reserved_for:
            return not self._own.isdisjoint(claim.devices)
        return has_no_user_without(claim, gone, self._world, self._stuck)
