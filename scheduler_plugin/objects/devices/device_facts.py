"""How much devices have: their capacities, and the counters that they consume.

Devices of one product are alike, so equal facts are one object: 100,000 devices need little more
memory than their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from kube.shapes.quantities import thousandths
from kube.shapes.slices import NO_CAPACITY, Capacity, CounterConsumption, Device
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.devices.request_policies import Policy, policy_of
from scheduler_plugin.objects.tables import count, uncount


class DeviceCapacity(NamedTuple):
    """One capacity of a device, in thousandths."""

    name: str
    has: int
    policy: Policy


class ConsumedCounter(NamedTuple):
    """What a device consumes of a counter while it is in use, in thousandths."""

    counter_set: str
    name: str
    amount: int


class DeviceFacts(NamedTuple):
    """How much a device has.

    Attributes:
        capacities: In the order of their names.
        counters: In the order of sets and names.
        is_divided: Whether several claims may have parts of it.
        driver: The domain of names that have none.
    """

    capacities: tuple[DeviceCapacity, ...] = ()
    counters: tuple[ConsumedCounter, ...] = ()
    is_divided: bool = False
    driver: str = ""

    def capacity(self, name: str) -> DeviceCapacity | None:
        """A capacity by its name, with the driver's domain or without."""
        names = names_of(name, self.driver)
        return next((found for found in self.capacities if found.name in names), None)


def names_of(name: str, driver: str) -> tuple[str, str]:
    """A name of a capacity without the driver's domain, and with it; both mean the same."""
    local = name.removeprefix(f"{driver}/")
    return local, f"{driver}/{local}"


def device_facts(device: Device, driver: str) -> DeviceFacts:
    """The facts of a driver's device in a slice; what is no quantity is left out."""
    return _shared(
        DeviceFacts(
            tuple(sorted(_capacities(device.capacity or {}))),
            tuple(sorted(_counters(device.consumes_counters or ()))),
            bool(device.allow_multiple_allocations),
            driver,
        )
    )


def _capacities(given: Mapping[str, Capacity | None]) -> Iterator[DeviceCapacity]:
    for name, each in given.items():
        found = each or NO_CAPACITY
        if (has := thousandths(found.value)) is not None:
            yield DeviceCapacity(intern(name), has, policy_of(found.request_policy))


def _counters(given: Iterable[CounterConsumption]) -> Iterator[ConsumedCounter]:
    for consumption in given:
        counter_set = intern(consumption.counter_set or "")
        for name, each in (consumption.counters or {}).items():
            if each is not None and (amount := thousandths(each.value)) is not None:
                yield ConsumedCounter(counter_set, intern(name), amount)


@lru_cache(maxsize=10_000)
def _shared(facts: DeviceFacts) -> DeviceFacts:
    return facts


class ListedDevice(NamedTuple):
    """A device that a slice lists.

    Attributes:
        look: What CEL sees of it, see `device_looks`.
    """

    device: DeviceId
    facts: DeviceFacts
    look: str


class DeviceTable:
    """All devices that slices list, with their facts and looks.

    While a pool is replaced, two slices may list a device. Which of them counts then does not
    depend on the order in which they came.
    """

    def __init__(self) -> None:
        self._first: dict[DeviceId, ListedDevice] = {}
        # Those that a further slice lists.
        self._more: dict[DeviceId, tuple[ListedDevice, ...]] = {}
        # By driver and facts: how many devices there are of each look.
        self._by_driver: dict[str, dict[DeviceFacts, dict[str, int]]] = {}

    def add(self, listed: ListedDevice) -> None:
        device, facts, look = listed
        count(self._by_driver.setdefault(device.driver, {}).setdefault(facts, {}), look, 1)
        if device in self._first:
            self._more[device] = (*self._more.get(device, ()), listed)
        else:
            self._first[device] = listed

    def remove(self, listed: ListedDevice) -> None:
        """Remove what `add` added."""
        device, facts, look = listed
        left = list(self._all(device))
        left.remove(listed)
        self._more.pop(device, None)
        del self._first[device]
        uncount(self._by_driver[device.driver], facts, look)
        if not self._by_driver[device.driver]:
            del self._by_driver[device.driver]
        if left:
            self._first[device] = left[0]
        if left[1:]:
            self._more[device] = tuple(left[1:])

    def _all(self, device: DeviceId) -> tuple[ListedDevice, ...]:
        return (self._first[device], *self._more.get(device, ()))

    def of(self, device: DeviceId) -> ListedDevice | None:
        """A device as slices list it; None if no slice does."""
        found = self._first.get(device)
        return found if device not in self._more else max(self._all(device), key=repr)

    def drivers(self) -> Iterable[str]:
        """The drivers of all these devices."""
        return self._by_driver.keys()

    def kinds(self, driver: str) -> Iterable[DeviceFacts]:
        """The different facts of the devices of a driver."""
        return self._by_driver.get(driver, {}).keys()

    def looks(self, driver: str, facts: DeviceFacts) -> Iterable[str]:
        """The looks of the driver's devices that have these facts."""
        return self._by_driver.get(driver, {}).get(facts, {}).keys()
