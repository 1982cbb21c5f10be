"""Slots: the concurrent uses that an Instance allows, and their holders.

    Instance object ──instance_slots──► InstanceSlots ──► SlotWrite ──merge_patch──► Instance object

The object on the API server is the source of truth. `InstanceSlots` is a view of it at one resource
version. A decision (`slot_writes.SlotWrite`) is written only if the object is still at that
version; otherwise it is decided again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
_NOT_WITHHELD: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSlots:
    """The slots of one Instance at one resource version.

    Attributes:
        capacity: Number of slots, that is, of concurrent uses.
        nodes: The nodes that see the device.
        deleted: Whether the object is terminating.
        holders: Holder of each slot that is taken. After the capacity was lowered, slots beyond it
            may be taken; they stay until they are released.
        unknown_keys: Keys of `deviceUsage` that name no slot of this Instance. They are ignored.
        claimable: Whether the device is offered through DRA, so that claims may have all free uses.
            No slot is given then, and held slots are kept.
        shared: Whether several nodes may see the device.
        withheld: Slots that are not given away on this node though they may be free, each with the
            taint of an administrator. A container that holds one keeps it.
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
    unknown_keys: tuple[str, ...] = ()
    finalizers: tuple[str, ...] = ()
    claimable: bool = False
    shared: bool = False
    withheld: Mapping[int, str] = field(default_factory=lambda: _NOT_WITHHELD)

    @property
    def free(self) -> tuple[int, ...]:
        """Slots within the capacity that no node holds, in order."""
        return tuple(i for i in range(self.capacity) if i not in self.holders)

    @property
    def available(self) -> tuple[int, ...]:
        """Free slots that may be given away now.

        Usually these are all free slots. While slots beyond a lowered capacity are in use, so many
        fewer are available that the number of used slots never rises above the capacity.
        """
        if self.claimable:
            return ()
        free = tuple(i for i in self.free if i not in self.withheld) if self.withheld else self.free
        return free[: max(0, self.capacity - len(self.holders))]

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
    """The Instance that counts among those of one name in several namespaces; usually there is one.

    A deleted Configuration leaves its Instance as long as slots are held, and a Configuration of
    the same name in another namespace may find the same device. Slots of the second Instance are
    given only after those of the first are released. Among equals the last counts.
    """
    return min(reversed(found), key=lambda slots: (not slots.holders, slots.deleted), default=None)


def instance_slots(obj: JsonObject | InstanceObject) -> InstanceSlots:
    """Parse an Instance object. An unreadable value never counts as a free slot.

    Raises UnreadableError.
    """
    found = read_as(InstanceObject, obj)
    metadata, spec = found.metadata, found.spec or NO_INSTANCE_SPEC
    name = InstanceName(metadata.name)
    holders, unknown_keys = slot_holders(name, spec.device_usage or {})
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
        unknown_keys=unknown_keys,
        finalizers=tuple(metadata.finalizers or ()),
        claimable=is_claimable(metadata),
        shared=bool(spec.shared),
    )


def slot_devices(slots: InstanceSlots, node: NodeName) -> dict[int, DeviceKey | None]:
    """The kubelet's device for each slot that a node holds.

    It is None for a value that no Allocate can have written: the id of another Instance or slot, or
    an id that a lower slot has already.
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
    """A sentence that says which node holds a slot, for a user who was refused it on `node`."""
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
    """Problems in `deviceUsage` that only an administrator can mend, as sentences for Events."""
    unknown = [
        held_sentence(slots, index, node)
        for index, holder in sorted(slots.holders.items())
        if isinstance(holder, UnknownHolder)
    ]
    unknown_keys = [
        f"key {key!r} names no slot of Instance {slots.name}" for key in slots.unknown_keys
    ]
    return (*unknown, *unknown_keys)


def full_sentence(slots: InstanceSlots, node: NodeName) -> str:
    """A sentence that says why an Instance has no slot to give, with the holders."""
    if slots.claimable:
        return f"Instance {slots.name} is offered through Dynamic Resource Allocation now"
    held = [held_sentence(slots, index, node) for index in sorted(slots.holders)]
    why = "; ".join((*held, *_withheld_sentences(slots)))
    why = f": {why}" if why else ""
    return f"Instance {slots.name} has no slot left of its {slots.capacity}{why}"


def _withheld_sentences(slots: InstanceSlots) -> tuple[str, ...]:
    """One sentence for each taint that withholds free slots."""
    free = [index for index in slots.free if index in slots.withheld]
    taints = dict.fromkeys(slots.withheld[index] for index in free)
    return tuple(f"the taint {taint} withholds slots" for taint in taints)


def by_name(slots: Iterable[InstanceSlots]) -> dict[InstanceName, InstanceSlots]:
    """Views by the name of their Instance."""
    return {view.name: view for view in slots}
