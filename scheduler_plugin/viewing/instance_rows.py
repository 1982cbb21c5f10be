"""Devices by what a plugin keeps of them: where each is, and who uses how many of its slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from driver.api import DRIVER_NAME
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import Result
from scheduler_plugin.objects.devices.devices import InstanceView

EVERYWHERE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    """One device: an Instance, or another driver's device that an accounted claim has.

    Attributes:
        configuration: "" for another driver's.
        nodes: Those that see it; `*` where nothing tells.
        slots: How many uses it has at one time; None where nothing tells.
        used: How many of them are in use.
        claims: Those that have it, as namespace/name, each with its slots.
        held: Slots that pods hold through the device plugin, by node.
    """

    name: str
    driver: str
    pool: str = ""
    configuration: str = ""
    nodes: tuple[str, ...] = (EVERYWHERE,)
    slots: int | None = None
    used: int = 0
    claims: tuple[tuple[str, int], ...] = ()
    held: tuple[tuple[str, int], ...] = ()


_Uses = dict[str, int]
"""Slots by claim."""


def instance_rows(world: WorldView) -> Iterator[InstanceRow | None]:
    """All devices, by node and name; None for each claim that was looked at on the way."""
    instances = {found.name: found for found in world.facts.catalog.instances()}
    ours: dict[str, _Uses] = {name: {} for name in instances}
    others: dict[tuple[str, str, str], _Uses] = {}
    for claim in list(world.facts.claims()):
        for result in claim.results or ():
            name = _instance(result, instances)
            key = (result.driver, result.pool, result.device)
            uses = ours[name] if name else others.setdefault(key, {})
            slots = 0 if result.admin_access else result.slots or 1
            owner = "/".join(claim.key)
            uses[owner] = uses.get(owner, 0) + slots
        yield None
    for found in sorted(instances.values(), key=lambda i: (i.nodes, i.name)):
        yield _of_instance(found, ours[found.name])
    for (driver, pool, name), uses in sorted(others.items()):
        yield InstanceRow(
            name=name, driver=driver, pool=pool, used=sum(uses.values()), claims=_sorted(uses)
        )


def _of_instance(found: InstanceView, uses: _Uses) -> InstanceRow:
    return InstanceRow(
        name=found.name,
        driver=DRIVER_NAME,
        configuration=found.configuration,
        nodes=tuple(sorted(found.nodes)),
        slots=found.capacity,
        used=sum(uses.values()) + sum(slots for _, slots in found.held),
        claims=_sorted(uses),
        held=found.held,
    )


def _instance(result: Result, instances: Mapping[str, InstanceView]) -> str:
    """The Instance that a device is: it has its name, or is one of its uses; "" for none."""
    if result.driver != DRIVER_NAME:
        return ""
    stem, _, number = result.device.rpartition("-")
    for name in (result.device, stem if number.isdecimal() else ""):
        if name in instances:
            return name
    return ""


def _sorted(uses: _Uses) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(uses.items()))
