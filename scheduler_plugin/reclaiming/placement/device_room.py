"""The room on devices for one search, with the counters that devices of a pool share.

Partitions of one device share counters, so that not all of them fit together. A device consumes its
amounts while it is in use, once, however many claims have parts of it. Each device is looked at by
itself: of several partitions that one pod gets together it is assumed that they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import accumulate, takewhile

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.placement.device_parts import Taken
from scheduler_plugin.reclaiming.placement.device_use import DeviceUse
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices, Pool
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
        key = device.device.driver, device.device.pool
        if key not in self._free:
            self._free[key] = free_counters(self._devices.pool(*key), self._is_used)
        return are_free(device, self._free[key])

    def _is_used(self, device: PublishedDevice) -> bool:
        return device.device in self._taken or self._use.is_used(device.device, self._gone)


def free_counters(
    pool: Pool, is_used: Callable[[PublishedDevice], bool]
) -> Mapping[CounterName, int]:
    """What is free of the counters of a pool; negative where devices in use exceed them."""
    free = dict(pool.counters)
    for device in pool.devices.values():
        for each in device.counters if is_used(device) else ():
            if (name := (each.counter_set, each.name)) in free:
                free[name] -= each.amount
    return free


def are_free(device: PublishedDevice, free: Mapping[CounterName, int]) -> bool:
    """Whether a device fits in free counters; those that are not published have enough."""
    return all(
        free.get((each.counter_set, each.name), each.amount) >= each.amount
        for each in device.counters
    )


def most_together(devices: Collection[PublishedDevice], free: Mapping[CounterName, int]) -> int:
    """How many of these devices of a pool can be in use together at most, by its free counters.

    Each counter is looked at by itself, and the devices that consume least of it come first. So
    fewer may fit, never more.
    """
    most = len(devices)
    for name in {(each.counter_set, each.name) for one in devices for each in one.counters}:
        if (left := free.get(name)) is not None:
            amounts = sorted(_amount(device, name) for device in devices)
            fitting = takewhile(max(left, 0).__ge__, accumulate(amounts))
            most = min(most, sum(1 for _ in fitting))
    return most


def _amount(device: PublishedDevice, name: CounterName) -> int:
    """What a device consumes of a counter."""
    return sum(each.amount for each in device.counters if (each.counter_set, each.name) == name)


def released_with(device: DeviceId, devices: OfferedDevices) -> Iterator[DeviceId]:
    """The device, and those that may fit once it is free, since they share counters with it."""
    yield device
    pool = devices.pool(device.driver, device.pool).devices
    found = pool.get(device.name)
    names = {(each.counter_set, each.name) for each in (found.counters if found else ())}
    for other in pool.values() if names else ():
        if any((each.counter_set, each.name) in names for each in other.counters):
            yield other.device
