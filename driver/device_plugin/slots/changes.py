"""Changes of slots: how soon slot reconciliation has to look into one.

a slot of this node taken or freed by hand, by another driver  ──► now: a container may use it
taken by an Allocate of this process                           ──► soon, when the kubelet has it
by slot reconciliation itself                                  ──► never, it knows
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto

from driver.api import NodeName
from driver.device_ids import DeviceKey
from driver.instances.slots.slots import InstanceSlots, SlotWrite, slot_devices


class Look(Enum):
    """When to look at what a node's containers use."""

    NOW = auto()
    SOON = auto()
    NEVER = auto()


def look_after(
    old: InstanceSlots | None,
    new: InstanceSlots,
    node: NodeName,
    given: Collection[DeviceKey],
    written: SlotWrite | None,
) -> Look:
    """When to look after a change of an Instance.

    Args:
        old: None for one that came; containers may use it from before it went.
        new: As it is now.
        node: Whose slots are kept.
        given: Devices that this process gave to the kubelet lately.
        written: What slot reconciliation is writing.
    """
    if old is None:
        return Look.NOW
    before, after = dict(old.held_by(node)), dict(new.held_by(node))
    if before == after or (written and _is_outcome(old, new, written)):
        return Look.NEVER
    if not before.items() <= after.items():
        return Look.NOW
    devices = slot_devices(new, node)
    is_given = all(devices[index] in given for index in after.keys() - before.keys())
    return Look.SOON if is_given else Look.NOW


def _is_outcome(old: InstanceSlots, new: InstanceSlots, write: SlotWrite) -> bool:
    """Whether a change is that write and no more."""
    holders = {**old.holders, **write.changes}
    taken = {index: holder for index, holder in holders.items() if holder is not None}
    return new.uid == write.uid and new.name == write.instance and taken == new.holders
