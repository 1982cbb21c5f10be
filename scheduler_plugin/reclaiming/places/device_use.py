"""Which claims have which devices, and what of a device is left once pods are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.held_texts import names_of
from scheduler_plugin.objects.names import ClaimUid, PodUid
from scheduler_plugin.reclaiming.places.offers import Offer
from scheduler_plugin.reclaiming.victims.effects import is_left_without


class DeviceUse:
    """Who has what, as the claims say.

    What another pod's hold names is that pod's, whether it is free by now or not.
    """

    def __init__(self, world: WorldView, holds: Iterable[Hold], stuck: Collection[PodUid]) -> None:
        """`holds` are those of others; `stuck` are pods that are being deleted, and do not end."""
        self._world = world
        self._stuck = stuck
        self._promised = frozenset[DeviceId]().union(*(names_of(h.devices) for h in holds))

    def is_promised(self, device: DeviceId) -> bool:
        """Whether it is held for another pod."""
        return device in self._promised

    def has_room(
        self, offer: Offer, slots: int, gone: Collection[PodUid] | None, taken: int = 0
    ) -> bool:
        """Whether a device has as many slots free, or all of it, once these are gone.

        And those that are on their way out; None for what is free as it is. `taken` are slots that
        are somebody's already.
        """
        return not self.lacks(offer, slots, gone, taken)

    def lacks(
        self, offer: Offer, slots: int, gone: Collection[PodUid] | None, taken: int = 0
    ) -> int:
        """How many slots are missing then; 1 for a device that is used as a whole."""
        if self.is_promised(offer.device):
            return 1
        stay = [
            result.slots
            for claim in self._world.facts.claims_with(offer.device)
            if gone is None or not self._is_left(claim, gone)
            for result in claim.results or ()
            if result.device_id == offer.device and not result.admin_access
        ]
        if offer.slots is None:
            return int(bool(stay or taken))
        used = sum(offer.slots if n is None else n for n in stay)
        return max(0, used + taken + slots - offer.slots)

    def claims_leaving(self, device: DeviceId) -> Iterator[ClaimUid]:
        """Those with the device whose users are on their way out."""
        for claim in self._world.facts.claims_with(device):
            if self._is_left(claim, ()):
                yield claim.uid

    def _is_left(self, claim: ClaimView, gone: Collection[PodUid]) -> bool:
        """Whether a claim ends with these: one that nobody has reserved does not."""
        return bool(claim.reserved_for) and is_left_without(claim, gone, self._world, self._stuck)
