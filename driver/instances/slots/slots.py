"""Slots: the uses that an Instance allows at one time, and who has them.

    Instance object ──instance_slots──► InstanceSlots ──► SlotWrite ──merge_patch──► Instance object

The object is the truth. A view is what it said at one resource version; what is decided from it is
written only if the object is still at that version (`SlotWrite`), else it is decided again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

from driver.api import (
    MAX_CAPACITY,
    ConfigurationName,
    InstanceName,
    NodeName,
)
from driver.device_ids import (
    DeviceKey,
    configuration_resource,
    instance_resource,
    is_own_device,
    slot_id,
)
from driver.instances.stored.device_usage import (
    ByConfiguration,
    ByInstance,
    Holder,
    UnknownHolder,
    is_held_by,
)
from driver.instances.stored.objects import configuration_of, is_claimable, slot_holders
from driver.shapes.instances import NO_INSTANCE_SPEC, InstanceObject
from kube.shapes.reading import JsonObject, own_text, read_as

_NOTHING: Mapping[int, Holder] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSlots:
    """The slots of one Instance at one resource version.

    Attributes:
        capacity: Uses that are allowed at one time.
        nodes: Those that see the device.
        deleted: Whether the object only waits to be gone.
        holders: Holders of the slots that are taken. After the capacity was lowered there may be
            some beyond it; they stay until they are released.
        strays: Keys of `deviceUsage` that name no slot of this Instance. They mean nothing.
        claimable: Whether the device is offered through DRA, so that claims may have all that is
            left of it: no slot is given then, and those that are held are kept.
        shared: Whether several nodes may see the device.
    """

    namespace: str
    name: InstanceName
    uid: str
    resource_version: str
    configuration: ConfigurationName
    capacity: int
    nodes: frozenset[NodeName]
    deleted: bool
    holders: Mapping[int, Holder]
    strays: tuple[str, ...] = ()
    finalizers: tuple[str, ...] = ()
    claimable: bool = False
    shared: bool = False

    @property
    def free(self) -> tuple[int, ...]:
        """Slots within the capacity that nobody holds, in order."""
        return tuple(i for i in range(self.capacity) if i not in self.holders)

    @property
    def available(self) -> tuple[int, ...]:
        """Free slots that may be given away now.

        These are all free ones, unless slots beyond a lowered capacity are still in use: then so
        many less that no more are ever in use than before.
        """
        if self.claimable:
            return ()
        return self.free[: max(0, self.capacity - len(self.holders))]

    def held_by(self, node: NodeName) -> Mapping[int, Holder]:
        """The slots that a node holds, in order."""
        if not self.holders:
            return _NOTHING
        holders = sorted(self.holders.items())
        return {index: holder for index, holder in holders if is_held_by(holder, node)}

    def held_as(self, holder: Holder) -> tuple[int, ...]:
        """The slots of exactly this holder, in order."""
        return tuple(sorted(i for i, h in self.holders.items() if h == holder))

    def is_offered_on(self, node: NodeName) -> bool:
        """Whether the object says that this node may use the device."""
        return node in self.nodes and not self.deleted


def counting(found: Sequence[InstanceSlots]) -> InstanceSlots | None:
    """Which of the Instances of one name counts: one in each of several namespaces, as a rule one.

    A Configuration that was deleted leaves its Instance as long as slots are held, and one of its
    name in another namespace finds the same device. No slot of that is given before. Of equals the
    last counts.
    """
    return min(reversed(found), key=lambda slots: (not slots.holders, slots.deleted), default=None)


def instance_slots(obj: JsonObject | InstanceObject) -> InstanceSlots:
    """Parse an Instance object; nonsense in it never becomes a slot that is free.

    Raises UnreadableError.
    """
    found = read_as(InstanceObject, obj)
    metadata, spec = found.metadata, found.spec or NO_INSTANCE_SPEC
    name = InstanceName(metadata.name)
    holders, strays = slot_holders(name, spec.device_usage or {})
    return InstanceSlots(
        namespace=metadata.namespace or "",
        name=name,
        uid=own_text(metadata.uid, "metadata.uid"),
        resource_version=metadata.resource_version or "",
        configuration=configuration_of(spec),
        capacity=min(max(0, spec.capacity or 0), MAX_CAPACITY),
        nodes=frozenset(map(NodeName, spec.nodes or ())),
        deleted=metadata.deletion_timestamp is not None,
        holders=holders,
        strays=strays,
        finalizers=tuple(metadata.finalizers or ()),
        claimable=is_claimable(metadata),
        shared=bool(spec.shared),
    )


def slot_devices(slots: InstanceSlots, node: NodeName) -> dict[int, DeviceKey | None]:
    """Which of the kubelet's devices each slot that a node holds is for.

    None where the value is one that no Allocate can have written: the id of another Instance or
    slot, or an id that a lower slot has already.
    """
    found: dict[int, DeviceKey | None] = {}
    seen: set[DeviceKey | None] = set()
    for index, holder in slots.held_by(node).items():
        device = _device(slots, index, holder)
        found[index] = None if device in seen else device
        seen.add(device)
    return found


def _device(slots: InstanceSlots, index: int, holder: Holder) -> DeviceKey | None:
    slot = slot_id(slots.name, index)
    if isinstance(holder, ByInstance):
        return DeviceKey(instance_resource(slots.name), slot)
    if not isinstance(holder, ByConfiguration):
        return None
    ours = is_own_device(holder.device, slots.configuration)
    if ours and holder.device not in (slots.name, slot):
        return None
    return DeviceKey(configuration_resource(slots.configuration), holder.device)


def held_devices(slots: InstanceSlots, node: NodeName) -> dict[str, int]:
    """The slots that a node holds through the Configuration, by device id."""
    resource = configuration_resource(slots.configuration)
    found = slot_devices(slots, node).items()
    return {device.id: index for index, device in found if device and device.resource == resource}


def held_sentence(slots: InstanceSlots, index: int, node: NodeName) -> str:
    """Who holds a slot, for a person who was refused it on `node`."""
    slot = slot_id(slots.name, index)
    match slots.holders.get(index):
        case None:
            return f"slot {slot} is free"
        case ByInstance(holder):
            return f"slot {slot} is held by {_named(holder, node)} through the Instance"
        case ByConfiguration(device, holder):
            through = f"through the Configuration {slots.configuration}, as device {device}"
            return f"slot {slot} is held by {_named(holder, node)} {through}"
        case UnknownHolder(value):
            return f"slot {slot} has the value {value!r}, which names no holder"
        case holder:
            assert_never(holder)


def _named(holder: NodeName, node: NodeName) -> str:
    return f"this node, {node}," if holder == node else f"node {holder}"


def usage_problems(slots: InstanceSlots, node: NodeName) -> tuple[str, ...]:
    """What of `deviceUsage` only a person can put right, each as a sentence for an Event."""
    unknown = [
        held_sentence(slots, index, node)
        for index, holder in sorted(slots.holders.items())
        if isinstance(holder, UnknownHolder)
    ]
    strays = [f"key {key!r} names no slot of Instance {slots.name}" for key in slots.strays]
    return (*unknown, *strays)


def full_sentence(slots: InstanceSlots, node: NodeName) -> str:
    """Why an Instance has no slot to give, with those who hold them."""
    if slots.claimable:
        return f"Instance {slots.name} is offered through Dynamic Resource Allocation now"
    held = "; ".join(held_sentence(slots, index, node) for index in sorted(slots.holders))
    why = f": {held}" if held else ""
    return f"Instance {slots.name} has no slot left of its {slots.capacity}{why}"


def by_name(slots: Iterable[InstanceSlots]) -> dict[InstanceName, InstanceSlots]:
    """Views by the name of their Instance."""
    return {view.name: view for view in slots}
