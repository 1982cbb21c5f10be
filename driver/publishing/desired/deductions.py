"""Deductions: the uses that Dynamic Resource Allocation may offer beside the device plugin.

    slots held through the device plugin ──► free uses of each Instance ──► devices to offer

A node moves to DRA while pods still hold slots. DRA does not offer these uses until the pods end,
so for each Instance: uses offered + slots held ≤ capacity.

* One device, of capacity 1 or with a number of slots: it shows the free uses, and is not published
  while none is free. A taint would not do: pods may tolerate taints, and a queue that counts
  devices must count those that can be allocated.
* A device for each slot: one device less for each held slot. Devices that are published already
  stay, since claims may have them; the others are added again in their order.

The published uses never fall below what claims consume, since the device plugin gives no slot of an
Instance that DRA offers. If an administrator writes a slot by hand, kube-scheduler allocates no
more of the device, and running claims keep it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from driver.api import DeviceName, InstanceName, NodeName
from driver.instances.instances import Instance
from driver.instances.stored.device_usage import is_held_by
from driver.instances.stored.objects import StoredInstance

HeldSlots = Mapping[tuple[str, InstanceName], int]
"""Number of held slots of an Instance, by its namespace and name; a missing entry means 0."""


@dataclass(frozen=True, slots=True)
class Deductions:
    """The uses that are not offered now.

    Attributes:
        held: Held slots of each Instance.
        shown: Devices that are in the pool already, so that claims may have them.
    """

    held: HeldSlots = field(default_factory=dict)
    shown: Collection[DeviceName] = frozenset()

    def free_uses(self, instance: Instance) -> int:
        """Uses of an Instance that no pod holds through the device plugin."""
        if not self.held:
            return instance.capacity
        held = self.held.get((instance.namespace, instance.name), 0)
        return max(0, instance.capacity - held)

    def offered(self, instance: Instance, names: Sequence[DeviceName]) -> frozenset[DeviceName]:
        """The devices of an Instance to offer, out of all its names."""
        order = sorted(names, key=lambda name: name not in self.shown)
        return frozenset(order[: self.free_uses(instance)])


def held_slots(stored: Iterable[StoredInstance]) -> HeldSlots:
    """The number of held slots of each Instance, on all nodes."""
    return {(s.namespace, s.name): len(s.holders) for s in stored if s.holders}


def holds_slots(stored: Iterable[StoredInstance], node: NodeName) -> bool:
    """Whether a node holds slots of any Instance."""
    return any(is_held_by(holder, node) for s in stored for holder in s.holders)
