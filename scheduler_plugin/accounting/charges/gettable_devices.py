"""The devices that a request can get, the costliest first: the first one is the most it may cost.

A device can be got unless a selector of the class or of the request, or that of the entry which
counts it, refuses its look. Looks are evaluated in the same order, so of thousands of devices that
differ in a serial number few are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from scheduler_plugin.objects.devices.device_facts import DeviceFacts, DeviceTable
from scheduler_plugin.objects.devices.gettable import AtMost
from scheduler_plugin.objects.devices.open_looks import OpenGroup, OpenLook, is_refused, open_look
from scheduler_plugin.objects.devices.selections import Selections, Selectors

MOST_AT_ONCE = 5_000
"""How many looks of a request are to be evaluated before its claims are counted again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GettableDevices:
    """What one request can get of the devices that one entry counts.

    Attributes:
        drivers: The drivers of these devices.
        selectors: Those of the class, of the request and of the entry, which are evaluated apart.
        cost: What a device of these facts may cost.
    """

    table: DeviceTable
    selections: Selections
    drivers: tuple[str, ...]
    selectors: tuple[Selectors, ...]
    cost: Callable[[DeviceFacts], int]

    def at_most(self) -> AtMost:
        """The most that one device may cost, 0 if there is none, and what is open about it."""
        most = next((cost for cost, _ in self._looks()), 0)
        looks = tuple(islice(self._open_looks(), MOST_AT_ONCE))
        return AtMost(most, OpenGroup(looks) if looks else None)

    def _open_looks(self) -> Iterator[OpenLook]:
        for _, look in self._looks():
            found = list(open_look(self.selectors, look, self.selections))
            if not found:
                return
            yield from found

    def _looks(self) -> Iterator[tuple[int, str]]:
        """The cost and the look of each device that no result refuses, the costliest first."""
        kinds = [
            (self.cost(facts), driver, facts)
            for driver in self.drivers
            for facts in self.table.kinds(driver)
        ]
        for cost, driver, facts in sorted(kinds, key=lambda kind: kind[0], reverse=True):
            for look in self.table.looks(driver, facts) if cost else ():
                if not is_refused(self.selectors, look, self.selections):
                    yield cost, look
