"""What each device plugin lists to its node's kubelet.

    an Instance's slot is Healthy        ⇔ it is free, or held by this node through the Instance
    a Configuration's <instance>         ⇔ held by this node under this id, or a slot is free
    a Configuration's <instance>-<slot>  ⇔ it is free, or held by this node under this id

Healthy on the holder, since the kubelet starts no further container of a pod with a device that is
not. An id that this node holds stays listed, even where the Configuration now makes other ids or
fewer slots.

The shell makes the whole list anew and sends it when it differs from the last: on each event of an
Instance of the plugin, on each answer of discovery, on a change of the Configuration; and whether
it differs or not after a refused Allocate and every minute. An Instance's plugin ends when the
Instance is gone; a Configuration's stays while the Configuration has Instances here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from driver.api import InstanceName, NodeName
from driver.device_ids import slot_id
from driver.instances.slots.slots import InstanceSlots, held_devices
from driver.instances.stored.device_usage import ByInstance


@dataclass(frozen=True, slots=True, order=True)
class PluginDevice:
    """One device of a list for the kubelet."""

    id: str
    healthy: bool


def healthy_devices(devices: Iterable[PluginDevice]) -> int:
    """How many there are to give, those that are given included: what the kubelet counts."""
    return sum(device.healthy for device in devices)


def instance_devices(
    slots: InstanceSlots, node: NodeName, online: Collection[InstanceName]
) -> tuple[PluginDevice, ...]:
    """The list of an Instance's resource.

    Args:
        slots: The Instance.
        node: Whose kubelet is told.
        online: Instances whose devices this node's discovery handlers report now.
    """
    present = _is_present(slots, node, online)
    mine = set(slots.held_as(ByInstance(node)))
    usable = mine.union(slots.available)
    indexes = sorted(mine.union(range(slots.capacity)))
    return tuple(PluginDevice(slot_id(slots.name, i), present and i in usable) for i in indexes)


def configuration_devices(
    instances: Iterable[InstanceSlots],
    node: NodeName,
    online: Collection[InstanceName],
    *,
    unique_devices: bool,
) -> tuple[PluginDevice, ...]:
    """The list of a Configuration's resource, for its Instances; those not seen here add nothing.

    Args:
        instances: All of the Configuration.
        node: Whose kubelet is told.
        online: Instances whose devices this node's discovery handlers report now.
        unique_devices: Whether an Instance is one device, rather than one for each slot.
    """
    found: dict[str, bool] = {}
    for slots in instances:
        offered = _unique(slots, node) if unique_devices else _per_slot(slots)
        usable = offered if slots.is_offered_on(node) else {}
        present = _is_present(slots, node, online)
        held = dict.fromkeys(held_devices(slots, node), True)
        found |= {name: present and healthy for name, healthy in {**usable, **held}.items()}
    return tuple(PluginDevice(name, healthy) for name, healthy in sorted(found.items()))


def _unique(slots: InstanceSlots, node: NodeName) -> dict[str, bool]:
    return {slots.name: bool(slots.available) and not held_devices(slots, node)}


def _per_slot(slots: InstanceSlots) -> dict[str, bool]:
    available = set(slots.available)
    return {slot_id(slots.name, i): i in available for i in range(slots.capacity)}


def _is_present(slots: InstanceSlots, node: NodeName, online: Collection[InstanceName]) -> bool:
    return slots.is_offered_on(node) and slots.name in online
