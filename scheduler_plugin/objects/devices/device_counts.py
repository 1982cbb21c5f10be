"""How many devices a claim can find on one node, counted as slices come and go.

A claim is allocated for one node: to the devices that only this node can use come those that
several can use. Each slice is counted under all that a class may select by, so that to ask costs
nothing, however many slices there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from driver.api import DRIVER_NAME
from scheduler_plugin.objects.devices.devices import ClassView, SliceView

MAX_RESULTS = 32
"""Most devices of one claim: AllocationResultsMaxSize of resource.k8s.io/v1."""

Selection: TypeAlias = tuple[str, ...]
"""All devices: empty. Those of a driver, of a Configuration, of one Instance of it."""


@dataclass(slots=True)
class _Count:
    """The devices of one selection; `per_node[n]` nodes have n, or as many as a claim can have."""

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
        """Count a slice; with a sign of -1, no longer."""
        for selection, devices in _selections(found).items():
            count = self._counts.setdefault(selection, _Count())
            count.add(found.node, sign * devices)
            if not count:
                del self._counts[selection]

    def most(self, view: ClassView) -> int:
        """The most devices that a claim for all of a class can get.

        Which device a foreign class selects only CEL can tell; all of the drivers that it names
        count, or of all drivers.
        """
        count = self._count(view)
        return count.most if count is not None else 0

    def total(self, view: ClassView) -> int:
        """How many devices there are that may be of a class, in whatever slices."""
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
    """What a class may select; None for nothing. All drivers that it names must be the device's."""
    drivers = set(view.drivers)
    if not view.configuration:
        return None if len(drivers) > 1 else tuple(drivers)
    if drivers - {DRIVER_NAME}:
        return None
    if view.name == str(view.configuration):
        return (DRIVER_NAME, view.configuration)
    # One that Moorage made for an Instance bears its name.
    return (DRIVER_NAME, view.configuration, view.name)
