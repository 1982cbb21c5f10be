"""The maximum number of devices for one claim, counted as slices are added and removed.

A claim is allocated for one node: it can get the devices of that node, and those that several nodes
can use. Each slice is counted for all selections that include it, so that reads have a constant
cost.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from driver.api import DRIVER_NAME
from scheduler_plugin.objects.devices.devices import ClassView, SliceView

MAX_RESULTS = 32
"""The maximum number of devices of one claim: AllocationResultsMaxSize of resource.k8s.io/v1."""

Selection: TypeAlias = tuple[str, ...]
"""All devices (empty), or those of a driver, of a Configuration, of one of its Instances."""


@dataclass(slots=True)
class _Count:
    """The devices of one selection.

    Attributes:
        anywhere: Devices that several nodes can use.
        on: Devices by node.
        nodes: `nodes[n]` is how many nodes have n devices, or the maximum of a claim.
    """

    anywhere: int = 0
    on: dict[str, int] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=lambda: [0] * (MAX_RESULTS + 1))

    def add(self, node: str, devices: int) -> None:
        if not node:
            self.anywhere += devices
            return
        before = self.on.pop(node, 0)
        now = before + devices
        self.nodes[min(before, MAX_RESULTS)] -= 1
        self.nodes[min(now, MAX_RESULTS)] += 1
        if now:
            self.on[node] = now

    @property
    def total(self) -> int:
        return self.anywhere + sum(self.on.values())

    @property
    def most(self) -> int:
        on_one = next((n for n in range(MAX_RESULTS, 0, -1) if self.nodes[n] > 0), 0)
        return min(MAX_RESULTS, self.anywhere + on_one)

    def __bool__(self) -> bool:
        return bool(self.anywhere or self.on)


class DeviceCounts:
    """The devices of all slices."""

    def __init__(self) -> None:
        self._counts: dict[Selection, _Count] = {}

    def add(self, found: SliceView, sign: int = 1) -> None:
        """Add a slice; with a sign of -1, remove it."""
        for selection, devices in _selections(found).items():
            count = self._counts.setdefault(selection, _Count())
            count.add(found.node, sign * devices)
            if not count:
                del self._counts[selection]

    def most(self, view: ClassView) -> int:
        """The maximum number of devices for a claim that requests all of a class.

        For classes that Moorage did not make, CEL is not evaluated: all devices of the drivers that
        they name count, or of all drivers.
        """
        count = self._count(view)
        return count.most if count is not None else 0

    def total(self, view: ClassView) -> int:
        """How many devices in all slices may be of a class."""
        count = self._count(view)
        return count.total if count is not None else 0

    def _count(self, view: ClassView) -> _Count | None:
        selection = selection_of(view)
        return self._counts.get(selection) if selection is not None else None


def _selections(found: SliceView) -> Counter[Selection]:
    counts = Counter[Selection]()
    for (configuration, instance), n in found.counts:
        origin = (found.driver, configuration, instance) if configuration else (found.driver,)
        for length in range(len(origin) + 1):
            counts[origin[:length]] += n
    return counts


def selection_of(view: ClassView) -> Selection | None:
    """The selection of a class; None if it selects nothing, as with two demanded drivers."""
    drivers = set(view.drivers)
    if not view.configuration:
        return None if len(drivers) > 1 else tuple(drivers)
    if drivers - {DRIVER_NAME}:
        return None
    if view.name == str(view.configuration):
        return (DRIVER_NAME, view.configuration)
    # A class that Moorage made for an Instance has its name.
    return (DRIVER_NAME, view.configuration, view.name)
