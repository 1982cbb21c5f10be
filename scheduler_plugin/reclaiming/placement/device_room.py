"""The room on devices for one search, with the counters that devices of a pool share.

Partitions of one device share counters, so that not all of them fit together. A device consumes its
amounts while it is in use, once, however many claims have parts of it. Each device is looked at by
itself: of several partitions that one pod gets together it is assumed that they fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.placement.device_parts import Taken
from scheduler_plugin.reclaiming.placement.device_use import DeviceUse
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.offers import DeviceCriteria, Offer
from scheduler_plugin.reclaiming.placement.published_slices import CounterName, PublishedDevice


class DeviceRoom:
    """What is free of devices and counters."""

    def __init__(
        self,
        use: DeviceUse,
        devices: OfferedDevices,
        gone: Collection[PodUid] | None,
        taken: Taken,
    ) -> None:
        """Create.

        Args:
            use: The users of devices.
            devices: All devices.
            gone: Pods that count as gone, see `DeviceUse.has_room`.
            taken: What other placements take.
        """
        self._use = use
        self._devices = devices
        self._gone = gone
        self._taken = taken
        self._free: dict[tuple[str, str], Mapping[CounterName, int]] = {}

    def fits(self, offer: Offer, criteria: DeviceCriteria) -> bool:
        """Whether a device has room for a request, and its pool for the device."""
        taken = self._taken.get(offer.device, ())
        has_room = self._use.has_room(offer, criteria, self._gone, taken)
        return has_room and self._has_counters(offer.published)

    def _has_counters(self, device: PublishedDevice) -> bool:
        if not device.counters or self._is_used(device):
            return True
        free = self._free_in(device.device)
        return all(
            free.get((each.counter_set, each.name), each.amount) >= each.amount
            for each in device.counters
        )

    def _free_in(self, device: DeviceId) -> Mapping[CounterName, int]:
        """What is free of the counters of the device's pool."""
        key = device.driver, device.pool
        if key not in self._free:
            pool = self._devices.pool(*key)
            free = dict(pool.counters)
            for found in pool.devices.values():
                for each in found.counters if self._is_used(found) else ():
                    if (name := (each.counter_set, each.name)) in free:
                        free[name] -= each.amount
            self._free[key] = free
        return self._free[key]

    def _is_used(self, device: PublishedDevice) -> bool:
        return device.device in self._taken or self._use.is_used(device.device, self._gone)


def released_with(device: DeviceId, devices: OfferedDevices) -> Iterator[DeviceId]:
    """The device, and those that may fit once it is free, since they share counters with it."""
    yield device
    pool = devices.pool(device.driver, device.pool).devices
    found = pool.get(device.name)
    names = {(each.counter_set, each.name) for each in (found.counters if found else ())}
    for other in pool.values() if names else ():
        if any((each.counter_set, each.name) in names for each in other.counters):
            yield other.device
