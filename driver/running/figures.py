"""Figures of what there is at a moment, as they follow from what the driver knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from driver.api import NodeName
from driver.handlers.table import HandlerStanding, HandlerState
from driver.instances.inventory import Inventory
from driver.instances.slots.slots import InstanceSlots
from driver.plumbing.metrics import (
    COLLISIONS,
    DEVICES,
    HANDLERS,
    INSTANCES,
    SLOTS,
    SLOTS_HELD,
    SLOTS_USED,
    Sample,
    samples,
)


def handler_samples(handlers: Iterable[HandlerStanding]) -> Iterable[Sample]:
    """All states of each handler that there is, so that a state that was left reads 0."""
    counts: Counter[tuple[str, ...]] = Counter()
    for standing in handlers:
        source = "embedded" if standing.is_embedded else "external"
        for state in HandlerState:
            counts[standing.handler, source, str(state)] += state is standing.state
    return samples(HANDLERS, counts)


def inventory_samples(inventory: Inventory | None) -> Iterable[Sample]:
    """What a node offers; nothing before that is known."""
    if inventory is None:
        return
    devices: Counter[tuple[str, ...]] = Counter()
    collisions: Counter[tuple[str, ...]] = Counter()
    for name in inventory.configurations:
        devices.update({(name, "false"): 0, (name, "true"): 0})
        collisions[(name,)] += len(inventory.collisions.get(name, ()))
    devices.update((i.configuration, str(i.shared).lower()) for i in inventory.instances)
    yield from samples(DEVICES, devices)
    yield from samples(COLLISIONS, collisions)


def node_slot_samples(slots: Iterable[InstanceSlots], node: NodeName) -> Iterable[Sample]:
    """What a node holds through the device plugin."""
    held: Counter[tuple[str, ...]] = Counter()
    for view in slots:
        held[(view.configuration,)] += len(view.held_by(node))
    return samples(SLOTS_HELD, held)


def cluster_slot_samples(slots: Iterable[InstanceSlots]) -> Iterable[Sample]:
    """All Instances, and how much of them is in use."""
    instances: Counter[tuple[str, ...]] = Counter()
    total: Counter[tuple[str, ...]] = Counter()
    used: Counter[tuple[str, ...]] = Counter()
    for view in slots:
        name = view.configuration
        for seen in (True, False):
            instances[name, str(seen).lower()] += bool(view.nodes) is seen
        total[(name,)] += view.capacity
        used[(name,)] += len(view.holders)
    for family, counts in ((INSTANCES, instances), (SLOTS, total), (SLOTS_USED, used)):
        yield from samples(family, counts)
