"""Allocation of slots: what an Allocate of the kubelet takes, and what its containers get.

    ids of each container ──plan_allocate──► Allocation(writes, responses) | Refused(sentence)

The kubelet has decided before it asks, so ids that this node holds already are given again. All or
nothing: one device that cannot be had refuses the call.

How the shell carries it out:

1. Take the locks of the Instances named, in order of name; note the moment of this Allocate for
   each id (`is_overtaken` reads it), before anything else is read.
2. Plan from the stored Instances, in which own writes show at once, and from the inventory of now.
3. Send the writes. Conflict: read those Instances and plan again. Outcome not known: send the same
   write again; it succeeds or conflicts. Refused or given up after some were written: `undo` them.
4. Instances in `unwritten` were checked by no write: read them from the API server and plan again
   from that, once, before the answer.
5. Note the moment again, answer, release the locks. After a refusal send the list anew.

Killed in between: slots that were written are this node's, and no container has them; the kubelet
fails the pod, and slot reconciliation releases them.
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
    """What a node has to give at one moment.

    Attributes:
        slots: Instances as the API server has them, by name.
        instances: Devices as this node's discovery knows them, by name.
        files: What stands on the disk for Instances.
    """

    node: NodeName
    slots: Mapping[InstanceName, InstanceSlots]
    instances: Mapping[InstanceName, Instance]
    files: Mapping[InstanceName, Files] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """An Allocate that can be granted.

    Attributes:
        writes: One for each Instance of which slots are taken, by name.
        unwritten: Instances of which only slots are given that this node held before.
        responses: One for each container, in the order of the request.
    """

    writes: tuple[SlotWrite, ...]
    unwritten: tuple[InstanceName, ...]
    responses: tuple[ContainerResponse, ...]


@dataclass(frozen=True, slots=True)
class _Slot:
    """A slot that a device id stands for, and who is to hold it."""

    instance: InstanceName
    index: int
    holder: Holder


_Changes = dict[InstanceName, dict[int, Holder | None]]


def concerned(
    plugin: Plugin, containers: Sequence[Sequence[str]], offer: Offer
) -> tuple[InstanceName, ...]:
    """The Instances that an Allocate may take slots of, by name: those to be locked."""
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
        plugin: Which plugin was asked.
        containers: The device ids of each container.
        offer: What there is.
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
    """Why a device cannot be used on this node now; empty if it can."""
    if offer.slots[name].deleted:
        return f"Instance {name} is being deleted"
    instance = offer.instances.get(name)
    if instance is None or not offer.slots[name].is_offered_on(offer.node):
        return f"Instance {name} is not visible on node {offer.node}"
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
    """The Instance as it will be after what this call takes already."""
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
    """The Instances that may have a slot under this id; Akri's ids do not say which."""
    if not is_own_device(device, plugin.name):
        return tuple(s for _, s in sorted(offer.slots.items()) if s.configuration == plugin.name)
    parsed = parse_slot_id(device)
    name = parsed[0] if parsed else InstanceName(device)
    return (offer.slots[name],) if _is_of(plugin, name, offer) else ()


def _any_slot(name: InstanceName, offer: Offer, changes: _Changes) -> _Slot | Refused:
    """The lowest slot that is left; the kubelet names the Instance only."""
    slots = _view(name, offer, changes)
    if other := sorted(held_devices(slots, offer.node)):
        return Refused(
            f"Instance {name} is in use on this node, {offer.node}, as device {other[0]}"
        )
    if not slots.available:
        return Refused(full_sentence(slots, offer.node))
    return _Slot(name, slots.available[0], ByConfiguration(name, offer.node))
