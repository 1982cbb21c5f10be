"""What Dynamic Resource Allocation may offer beside the device plugin: the uses that nobody holds.

    slots held through the device plugin ──► uses left of each Instance ──► devices that are left

A node moves to DRA while pods still hold slots. What they hold is not offered a second time until
they end, so for each Instance: uses offered + slots held = capacity, or less.

* One device of capacity 1, or one with a number of slots: it shows what is left, and is not there
  while nothing is left. Not a taint: pods may tolerate taints, and a queue that counts the devices
  there are is to count those that can be had.
* A device for each slot: so many less. Those that are shown already stay, since claims may have
  them; the others come back in their order.

The number of a device never falls below what claims consume of it, as no slot is given through the
device plugin while DRA offers the Instance. Where somebody writes a slot by hand nevertheless,
kube-scheduler gives nothing more of the device, and takes nothing from those who have it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from driver.api import DeviceName, InstanceName, NodeName
from driver.instances.instances import Instance
from driver.instances.stored.device_usage import is_held_by
from driver.instances.stored.objects import StoredInstance

HeldSlots = Mapping[tuple[str, InstanceName], int]
"""How many slots of an Instance are held, by its namespace and name; none where it is missing."""


@dataclass(frozen=True, slots=True)
class Deductions:
    """What is not to be offered now.

    Attributes:
        shown: Devices that are in the pool already; claims may have them.
    """

    held: HeldSlots = field(default_factory=dict)
    shown: Collection[DeviceName] = frozenset()

    def left(self, instance: Instance) -> int:
        """Uses of an Instance that nobody holds through the device plugin."""
        if not self.held:
            return instance.capacity
        held = self.held.get((instance.namespace, instance.name), 0)
        return max(0, instance.capacity - held)

    def offered(self, instance: Instance, names: Sequence[DeviceName]) -> frozenset[DeviceName]:
        """Which of an Instance's devices there are, of all that it could have."""
        order = sorted(names, key=lambda name: name not in self.shown)
        return frozenset(order[: self.left(instance)])


def held_slots(stored: Iterable[StoredInstance]) -> HeldSlots:
    """The slots that are held, on whichever node."""
    return {(s.namespace, s.name): len(s.holders) for s in stored if s.holders}


def holds_slots(stored: Iterable[StoredInstance], node: NodeName) -> bool:
    """Whether a node holds slots of any Instance."""
    return any(is_held_by(holder, node) for s in stored for holder in s.holders)
