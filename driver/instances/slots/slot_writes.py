"""Writes of slots: atomic changes, each at the version of the Instance that it was decided from.

InstanceSlots, changes ──slot_write──► SlotWrite ──merge_patch──► Instance object
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from driver.api import (
    SLOTS_FINALIZER,
    InstanceName,
    NodeName,
)
from driver.device_ids import (
    DeviceKey,
    slot_id,
)
from driver.instances.slots.slots import InstanceSlots
from driver.instances.stored.device_usage import (
    Holder,
    holder_value,
)

Moment = float
"""Seconds of a clock that never steps back, comparable within one run of the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWrite:
    """An atomic change of an Instance's slots.

    It is written only while the object has this UID and resource version. So it may be sent again
    if the outcome is unknown: either it succeeds, or the conflict proves that no earlier request
    can still take effect.

    Attributes:
        node: The node, which is the field manager.
        changes: New holder of each slot; None releases the slot.
        finalizers: New finalizers of the object; None leaves them as they are.
        unless_allocated: The write is void if one of these devices was given to the kubelet at or
            after its moment, see `is_overtaken`.
    """

    namespace: str
    instance: InstanceName
    uid: str
    resource_version: str
    node: NodeName
    changes: Mapping[int, Holder | None]
    finalizers: tuple[str, ...] | None = None
    unless_allocated: Mapping[DeviceKey, Moment] = field(default_factory=dict)


def slot_write(
    slots: InstanceSlots,
    node: NodeName,
    changes: Mapping[int, Holder | None],
    unless_allocated: Mapping[DeviceKey, Moment] | None = None,
) -> SlotWrite:
    """The write that makes these changes to what a view shows."""
    return SlotWrite(
        namespace=slots.namespace,
        instance=slots.name,
        uid=slots.uid,
        resource_version=slots.resource_version,
        node=node,
        changes=dict(changes),
        finalizers=_finalizers(slots, changes),
        unless_allocated=unless_allocated or {},
    )


def _finalizers(
    slots: InstanceSlots, changes: Mapping[int, Holder | None]
) -> tuple[str, ...] | None:
    """The finalizers with ours while a slot is held; a terminating object accepts no new one."""
    held = any(holder is not None for holder in {**slots.holders, **changes}.values())
    others = tuple(name for name in slots.finalizers if name != SLOTS_FINALIZER)
    if held == (len(others) < len(slots.finalizers)) or (held and slots.deleted):
        return None
    return (*others, SLOTS_FINALIZER) if held else others


def is_overtaken(write: SlotWrite, allocated: Mapping[DeviceKey, Moment]) -> bool:
    """Whether an Allocate came after the evidence for this write was read.

    The caller holds the lock that Allocate takes, also while the write is sent: an Allocate of a
    slot that is held already changes nothing in the object, so no precondition would detect it.
    """
    return any(
        device in allocated and allocated[device] >= moment
        for device, moment in write.unless_allocated.items()
    )


def undo(write: SlotWrite, slots: InstanceSlots) -> SlotWrite | None:
    """The write that releases the slots of a write which the object still shows; None for none."""
    taken = {i: h for i, h in write.changes.items() if h is not None}
    changes = dict.fromkeys((i for i, h in taken.items() if slots.holders.get(i) == h), None)
    return slot_write(slots, write.node, changes) if changes and slots.uid == write.uid else None


def merge_patch(write: SlotWrite) -> Mapping[str, Any]:
    """The write as a JSON merge patch (RFC 7386); the API server checks UID and version.

    It is not a server-side apply: an apply without a key removes the key only if no other field
    manager owns it, and slots of other field managers must be released as well.
    """
    usage = {
        slot_id(write.instance, index): None if holder is None else holder_value(holder)
        for index, holder in sorted(write.changes.items())
    }
    metadata: dict[str, Any] = {"uid": write.uid, "resourceVersion": write.resource_version}
    if write.finalizers is not None:
        metadata["finalizers"] = list(write.finalizers)
    return {"metadata": metadata, "spec": {"deviceUsage": usage}}
