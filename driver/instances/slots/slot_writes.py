"""Writes of slots: a change that is written whole, and only to the version that it was decided for.

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
    """A change of an Instance's slots, to be written whole or not at all.

    It may be written only while the object is the one of this UID at this resource version. So it
    may be sent again where the outcome is not known: either it succeeds, or the conflict proves
    that no earlier sending can land any more.

    Attributes:
        node: In whose name, that is, by which field manager.
        changes: Holder of each slot afterwards; None releases it.
        finalizers: Those of the object afterwards; None leaves them alone.
        unless_allocated: Devices that the kubelet must not have been given at or after that
            moment, see `is_overtaken`.
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
    """Ours is there as long as a slot is held; an object that is being deleted takes no new one."""
    held = any(holder is not None for holder in {**slots.holders, **changes}.values())
    others = tuple(name for name in slots.finalizers if name != SLOTS_FINALIZER)
    if held == (len(others) < len(slots.finalizers)) or (held and slots.deleted):
        return None
    return (*others, SLOTS_FINALIZER) if held else others


def is_overtaken(write: SlotWrite, allocated: Mapping[DeviceKey, Moment]) -> bool:
    """Whether an Allocate came after the evidence for this write was read.

    Asked under the lock that Allocate takes, and the write is sent under it, too: an Allocate of a
    slot that is held already changes nothing in the object, so no precondition could see it.
    """
    return any(
        device in allocated and allocated[device] >= moment
        for device, moment in write.unless_allocated.items()
    )


def undo(write: SlotWrite, slots: InstanceSlots) -> SlotWrite | None:
    """Release what a write took, as far as the object still shows it; None for nothing left."""
    taken = {i: h for i, h in write.changes.items() if h is not None}
    changes = dict.fromkeys((i for i, h in taken.items() if slots.holders.get(i) == h), None)
    return slot_write(slots, write.node, changes) if changes and slots.uid == write.uid else None


def merge_patch(write: SlotWrite) -> Mapping[str, Any]:
    """The write as a JSON merge patch (RFC 7386); the API server checks UID and version.

    Not server-side apply: an apply that leaves a key out removes it only if nobody else wrote it,
    and slots that were written by hand or by another manager must be released as well.
    """
    usage = {
        slot_id(write.instance, index): None if holder is None else holder_value(holder)
        for index, holder in sorted(write.changes.items())
    }
    metadata: dict[str, Any] = {"uid": write.uid, "resourceVersion": write.resource_version}
    if write.finalizers is not None:
        metadata["finalizers"] = list(write.finalizers)
    return {"metadata": metadata, "spec": {"deviceUsage": usage}}
