"""The users of devices by claim, and the room on a device once pods are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView, DeviceId, Result
from scheduler_plugin.objects.held_texts import names_of
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.placement.device_parts import (
    Taking,
    allocated_part,
    part_of,
    taken_by,
    times,
)
from scheduler_plugin.reclaiming.placement.offers import DeviceCriteria, Offer
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
        self._reserved = taken_by((hold.devices, hold.parts) for hold in holds)

    def is_reserved(self, offer: Offer, criteria: DeviceCriteria) -> bool:
        """Whether holds of other pods leave less than a request asks for."""
        held = self._reserved.get(offer.device, ())
        return bool(held) and _room(offer, criteria, (), held) < 1

    def is_used(self, device: DeviceId, gone: Collection[PodUid] | None) -> bool:
        """Whether a device is held for another pod, or is allocated and stays so."""
        return device in self._reserved or bool(self._stay(device, gone))

    def has_room(
        self,
        offer: Offer,
        criteria: DeviceCriteria,
        gone: Collection[PodUid] | None,
        taken: Sequence[Taking] = (),
    ) -> bool:
        """Whether a device has room for a request, with these pods gone.

        Terminating pods count as gone too; `gone` None is for what is free now. What is `taken` is
        in use in addition.
        """
        return self.room(offer, criteria, gone, taken) >= 1

    def room(
        self,
        offer: Offer,
        criteria: DeviceCriteria,
        gone: Collection[PodUid] | None,
        taken: Sequence[Taking] = (),
    ) -> float:
        """How many such requests a device has room for, as `has_room`."""
        stay = self._stay(offer.device, gone)
        return _room(offer, criteria, stay, [*self._reserved.get(offer.device, ()), *taken])

    def _stay(self, device: DeviceId, gone: Collection[PodUid] | None) -> list[Result]:
        """The allocations of a device that stay with these pods gone."""
        return [
            result
            for claim in self._world.facts.claims_with(device)
            if gone is None or not self._is_left(claim, gone)
            for result in claim.results or ()
            if result.device_id == device and not result.admin_access
        ]

    def _is_left(self, claim: ClaimView, gone: Collection[PodUid]) -> bool:
        """Whether a claim ends with these pods; a claim without a reservation does not.

        An exception is a claim for a held device: Bind refuses it.
        """
        if not claim.reserved_for:
            return not self._own.isdisjoint(claim.devices)
        return has_no_user_without(claim, gone, self._world, self._stuck)


def _room(
    offer: Offer, criteria: DeviceCriteria, stay: Sequence[Result], taken: Sequence[Taking]
) -> float:
    """How many requests fit beside allocations that stay, and what is taken."""
    facts = offer.divided
    if facts is not None:
        used = [allocated_part(facts, result.consumed) for result in stay]
        used += [allocated_part(facts, each.part or ()) for each in taken]
        return times(facts, part_of(facts, criteria.capacity), used)
    if offer.slots is None:
        return 0 if stay or taken else 1
    slots = sum(offer.slots if result.slots is None else result.slots for result in stay)
    return max(0, offer.slots - slots - sum(each.slots for each in taken)) // criteria.slots
