"""Capacities of devices that several claims may have parts of, and how much of them is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from driver.api import DRIVER_NAME
from kube.shapes.quantities import quantity_text
from kube.shapes.slices import Device
from scheduler_plugin.accounting.books_views import BooksView
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.devices.device_facts import device_facts

Consumption = Mapping[DeviceId, Mapping[str, int]]
"""What claims consume of the capacities of devices, in thousandths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedCapacity:
    """A capacity of a device of another driver; quantities."""

    name: str
    used: str
    has: str


def consumption(books: BooksView) -> Consumption:
    """What all allocated claims consume."""
    found: dict[DeviceId, dict[str, int]] = {}
    for claim in books.facts.claims():
        for result in claim.results or ():
            if not result.admin_access:
                used = found.setdefault(result.device_id, {})
                for name, amount in result.consumed:
                    used[name] = used.get(name, 0) + amount
    return found


def divided_capacities(
    key: DeviceId, device: Device, consumed: Consumption
) -> Iterator[DividedCapacity]:
    """The capacities that claims divide; none of Moorage's devices, which have slots."""
    facts, used = device_facts(device, key.driver), consumed.get(key, {})
    for capacity in facts.capacities if facts.is_divided and key.driver != DRIVER_NAME else ():
        yield DividedCapacity(
            name=capacity.name,
            used=quantity_text(used.get(capacity.name, 0)),
            has=quantity_text(capacity.has),
        )
