"""Devices from the plugin's world: their nodes, and the claims and pods that use their slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from driver.api import DRIVER_NAME
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.viewing.device_rows import READY
from scheduler_plugin.viewing.device_states import DeviceState, DeviceStates

EVERYWHERE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    """One device: an Instance, or another driver's device that an accounted claim has.

    Attributes:
        configuration: The Configuration; "" for a device of another driver.
        nodes: The nodes that see it; `*` if they are not known.
        slots: The number of its slots; None if it is not known.
        used: How many slots are in use.
        claims: The claims that have it, as namespace/name, each with its slots.
        held: Slots that pods hold through the device plugin, by node.
        state, since, taints, published_on, rules: See `DeviceState`.
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
    state: str = READY
    since: str = ""
    taints: tuple[str, ...] = ()
    published_on: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


_Uses = dict[str, int]
"""Slots by claim."""


def instance_rows(
    world: WorldView, devices: OfferedDevices | None = None
) -> Iterator[InstanceRow | None]:
    """All devices, sorted by node and name; yields None after each step.

    Without `devices`, the devices that slices offer, only an Instance says that it is offline.
    """
    states = DeviceStates(devices, world.facts.catalog.taint_rules)
    yield from states.steps()
    instances = {found.name: found for found in world.facts.catalog.instances()}
    ours: dict[str, _Uses] = {name: {} for name in instances}
    others: dict[DeviceId, _Uses] = {}
    for claim in list(world.facts.claims()):
        for result in claim.results or ():
            device = result.device_id
            instance = instance_of(device, instances.get)
            uses = ours[instance.name] if instance else others.setdefault(device, {})
            slots = 0 if result.admin_access else result.slots or 1
            owner = "/".join(claim.key)
            uses[owner] = uses.get(owner, 0) + slots
        yield None
    for found in sorted(instances.values(), key=lambda i: (i.nodes, i.name)):
        yield _of_instance(found, ours[found.name], states.of_instance(found))
    for device, uses in sorted(others.items()):
        yield _of_other(device, uses, states.of_other(device))


def _of_other(device: DeviceId, uses: _Uses, state: DeviceState) -> InstanceRow:
    return InstanceRow(
        name=device.name,
        driver=device.driver,
        pool=device.pool,
        nodes=state.published_on or (EVERYWHERE,),
        used=sum(uses.values()),
        claims=_sorted(uses),
        state=state.state,
        since=state.since,
        taints=state.taints,
        published_on=state.published_on,
        rules=state.rules,
    )


def _of_instance(found: InstanceView, uses: _Uses, state: DeviceState) -> InstanceRow:
    return InstanceRow(
        name=found.name,
        driver=DRIVER_NAME,
        configuration=found.configuration,
        nodes=tuple(sorted(found.nodes)),
        slots=found.capacity,
        used=sum(uses.values()) + sum(slots for _, slots in found.held),
        claims=_sorted(uses),
        held=found.held,
        state=state.state,
        since=state.since,
        taints=state.taints,
        published_on=state.published_on,
        rules=state.rules,
    )


def instance_of(
    device: DeviceId, named: Callable[[str], InstanceView | None]
) -> InstanceView | None:
    """The Instance of a device, which has the Instance's name or is one of its uses; else None.

    `named` finds the Instance of a name.
    """
    if device.driver != DRIVER_NAME:
        return None
    stem, _, number = device.name.rpartition("-")
    found = named(device.name)
    return found if found is not None or not number.isdecimal() else named(stem)


def _sorted(uses: _Uses) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(uses.items()))
