"""Allocation of slots: the slots that an Allocate of the kubelet takes, and what containers get.

    ids of each container ──plan_allocate──► Allocation(writes, responses) | Refused(sentence)

The kubelet has decided before it calls, so ids that this node holds already are given again. One
device that is not available refuses the whole call.

How the shell carries it out:

1. Take the locks of the Instances named, in order of name; note the moment of this Allocate for
   each id (`is_overtaken` reads it), before anything else is read.
2. Plan from the stored Instances, which include own writes at once, and from the current inventory.
3. Send the writes. After a conflict, read those Instances and plan again. If an outcome is unknown,
   send the same write again; it succeeds or conflicts. After a refusal, `undo` what was written.
4. No write has checked the Instances in `unwritten`: read them from the API server and plan again,
   once, before the answer.
5. Note the moment again, answer, release the locks. After a refusal, send the list again.

If the driver is killed in between, this node holds the written slots although no container has
them. The kubelet fails the pod, and slot reconciliation releases the slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.device_ids import (
    configuration_resource,
    instance_resource,
    is_own_device,
    parse_slot_id,
    slot_id,
)
from driver.device_plugin.containers.responses import (
    ContainerResponse,
    Files,
    Refused,
    container_response,
)
from driver.instances.instances import Instance
from driver.instances.slots.slot_writes import SlotWrite, slot_write
from driver.instances.slots.slots import InstanceSlots, full_sentence, held_devices, held_sentence
from driver.instances.stored.device_usage import ByConfiguration, ByInstance, Holder


@dataclass(frozen=True, slots=True)
class OfInstance:
    """The device plugin of one Instance."""

    name: InstanceName

    def __str__(self) -> str:
        return instance_resource(self.name)


@dataclass(frozen=True, slots=True)
class OfConfiguration:
    """The device plugin of all devices of a Configuration."""

    name: ConfigurationName
    unique_devices: bool

    def __str__(self) -> str:
        return configuration_resource(self.name)


Plugin = OfInstance | OfConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a node can offer at one moment.

    Attributes:
        slots: The stored Instances, by name.
        instances: The Instances as this node's discovery reports them, by name.
        files: The files of Instances on the disk.
    """

    node: NodeName
    slots: Mapping[InstanceName, InstanceSlots]
    instances: Mapping[InstanceName, Instance]
    files: Mapping[InstanceName, Files] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """An Allocate that can be granted.

    Attributes:
        writes: One write for each Instance of which slots are taken, sorted by name.
        unwritten: Instances of which this node gets only slots that it held before.
        responses: One response for each container, in the order of the request.
    """

    writes: tuple[SlotWrite, ...]
    unwritten: tuple[InstanceName, ...]
    responses: tuple[ContainerResponse, ...]


@dataclass(frozen=True, slots=True)
class _Slot:
    """The slot of a device id, and its new holder."""

    instance: InstanceName
    index: int
    holder: Holder


_Changes = dict[InstanceName, dict[int, Holder | None]]


def concerned(
    plugin: Plugin, containers: Sequence[Sequence[str]], offer: Offer
) -> tuple[InstanceName, ...]:
    """The Instances of which an Allocate may take slots, sorted by name. The caller locks them."""
    if isinstance(plugin, OfInstance):
        return (plugin.name,)
    devices = {device for ids in containers for device in ids}
    found = (slots.name for d in devices for slots in _candidates(plugin, d, offer))
    return tuple(sorted(set(found)))


def plan_allocate(
    plugin: Plugin, containers: Sequence[Sequence[str]], offer: Offer
) -> Allocation | Refused:
    """Plan one Allocate call.

    Args:
        plugin: The plugin that was called.
        containers: The device ids of each container.
        offer: What this node can offer.
    """
    changes: _Changes = {}
    responses: list[ContainerResponse] = []
    for ids in containers:
        response = _container(plugin, ids, offer, changes)
        if isinstance(response, Refused):
            return response
        responses.append(response)
    return Allocation(
        writes=tuple(
            slot_write(offer.slots[name], offer.node, taken)
            for name, taken in sorted(changes.items())
            if taken
        ),
        unwritten=tuple(name for name, taken in sorted(changes.items()) if not taken),
        responses=tuple(responses),
    )


def _container(
    plugin: Plugin, ids: Sequence[str], offer: Offer, changes: _Changes
) -> ContainerResponse | Refused:
    instances: list[Instance] = []
    for device in ids:
        slot = _slot(plugin, device, offer, changes)
        if isinstance(slot, Refused):
            return slot
        absent = _absence(slot.instance, offer)
        if absent:
            return Refused(absent)
        taken = changes.setdefault(slot.instance, {})
        if offer.slots[slot.instance].holders.get(slot.index) != slot.holder:
            taken[slot.index] = slot.holder
        instances.append(offer.instances[slot.instance])
    return container_response(instances, offer.files)


def _absence(name: InstanceName, offer: Offer) -> str:
    """Why a device cannot be used on this node now; "" if it can."""
    if offer.slots[name].deleted:
        return f"Instance {name} is being deleted"
    instance = offer.instances.get(name)
    if instance is None or not offer.slots[name].is_offered_on(offer.node):
        return f"node {offer.node} does not see the device of Instance {name}"
    return "" if instance.online else f"Instance {name} is offline"


def _slot(plugin: Plugin, device: str, offer: Offer, changes: _Changes) -> _Slot | Refused:
    if isinstance(plugin, OfInstance):
        parsed = parse_slot_id(device)
        if parsed and parsed[0] == plugin.name and parsed[0] in offer.slots:
            return _named_slot(*parsed, ByInstance(offer.node), offer, changes)
        return _unknown(plugin, device)
    return _configuration_slot(plugin, device, offer, changes)


def _unknown(plugin: Plugin, device: str) -> Refused:
    return Refused(f"{device!r} is no device of {plugin}")


def _view(name: InstanceName, offer: Offer, changes: _Changes) -> InstanceSlots:
    """The Instance after the changes that this call has planned so far."""
    slots = offer.slots[name]
    taken = {i: h for i, h in changes.get(name, {}).items() if h is not None}
    return replace(slots, holders={**slots.holders, **taken})


def _named_slot(
    name: InstanceName, index: int, holder: Holder, offer: Offer, changes: _Changes
) -> _Slot | Refused:
    """The slot that the kubelet names."""
    slots = _view(name, offer, changes)
    if index in slots.available or slots.holders.get(index) == holder:
        return _Slot(name, index, holder)
    if index in slots.holders:
        return Refused(held_sentence(slots, index, offer.node))
    if index >= slots.capacity:
        slot = slot_id(name, index)
        return Refused(f"slot {slot} is beyond the capacity, {slots.capacity}")
    return Refused(full_sentence(slots, offer.node))


def _configuration_slot(
    plugin: OfConfiguration, device: str, offer: Offer, changes: _Changes
) -> _Slot | Refused:
    holder = ByConfiguration(device, offer.node)
    for slots in _candidates(plugin, device, offer):
        held = held_devices(_view(slots.name, offer, changes), offer.node)
        if device in held:
            return _Slot(slots.name, held[device], holder)
    parsed = parse_slot_id(device)
    if plugin.unique_devices and _is_of(plugin, InstanceName(device), offer):
        return _any_slot(InstanceName(device), offer, changes)
    if not plugin.unique_devices and parsed and _is_of(plugin, parsed[0], offer):
        return _named_slot(*parsed, holder, offer, changes)
    return _unknown(plugin, device)


def _is_of(plugin: OfConfiguration, name: InstanceName, offer: Offer) -> bool:
    slots = offer.slots.get(name)
    return slots is not None and slots.configuration == plugin.name


def _candidates(plugin: OfConfiguration, device: str, offer: Offer) -> tuple[InstanceSlots, ...]:
    """The Instances that may have a slot under this id; Akri's ids do not name the Instance."""
    if not is_own_device(device, plugin.name):
        return tuple(s for _, s in sorted(offer.slots.items()) if s.configuration == plugin.name)
    parsed = parse_slot_id(device)
    name = parsed[0] if parsed else InstanceName(device)
    return (offer.slots[name],) if _is_of(plugin, name, offer) else ()


def _any_slot(name: InstanceName, offer: Offer, changes: _Changes) -> _Slot | Refused:
    """The lowest free slot, since the kubelet names the Instance only."""
    slots = _view(name, offer, changes)
    if other := sorted(held_devices(slots, offer.node)):
        return Refused(
            f"Instance {name} is in use on this node, {offer.node}, as device {other[0]}"
        )
    if not slots.available:
        return Refused(full_sentence(slots, offer.node))
    return _Slot(name, slots.available[0], ByConfiguration(name, offer.node))
