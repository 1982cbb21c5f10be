"""Gauges of the driver's current state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric

from driver.api import NodeName
from driver.brokers.stored import Stored
from driver.handlers.registrations import HandlerStanding, HandlerState
from driver.instances.inventory import Inventory
from driver.instances.slots.slots import InstanceSlots
from driver.instances.unusable_properties import denied_properties
from driver.plumbing.prometheus import (
    AKRI_BROKERS,
    AKRI_INSTANCES,
    BROKERS,
    CLAIMS_PREPARED,
    COLLISIONS,
    DENIED_PROPERTIES,
    DEVICES,
    DOUBTFUL_CLAIMS,
    HANDLERS,
    INSTANCES,
    SLOTS,
    SLOTS_HELD,
    SLOTS_USED,
    SNAPSHOTS,
    Read,
)
from driver.preparing.files.prepared import VERSION, PreparedClaims
from driver.running.arguments import Address
from driver.running.monitoring.ready_socket import WhyNotReady

_Counts = Counter[tuple[str, ...]]


async def serve_metrics(address: Address | None, why_not_ready: WhyNotReady, *reads: Read) -> None:
    """Serve these metrics and the readiness until cancelled; return at once without an address."""
    if address is None:
        return
    # Imported late: the HTTP server takes memory.
    from driver.running.monitoring.prometheus_server import serve

    with SNAPSHOTS.reading(*reads):
        await serve(address, why_not_ready)


def handler_figures(handlers: Iterable[HandlerStanding]) -> Iterator[Metric]:
    """All states of each handler, so that a state that it has left reads 0."""
    counts = _Counts()
    for standing in handlers:
        source = "embedded" if standing.is_embedded else "external"
        for state in HandlerState:
            counts[standing.handler, source, str(state)] += state is standing.state
    yield HANDLERS.of(counts)


def inventory_figures(inventory: Inventory | None) -> Iterator[Metric]:
    """The devices of a node; nothing before the first inventory."""
    if inventory is None:
        return
    devices, collisions, denied = _Counts(), _Counts(), _Counts()
    for name in inventory.configurations:
        devices.update({(name, "false"): 0, (name, "true"): 0})
        collisions[(name,)] += len(inventory.collisions.get(name, ()))
        denied[(name,)] = 0
    devices.update((i.configuration, str(i.shared).lower()) for i in inventory.instances)
    yield DEVICES.of(devices)
    for instance in inventory.instances:
        denied[(instance.configuration,)] += len(denied_properties(instance))
    yield COLLISIONS.of(collisions)
    yield DENIED_PROPERTIES.of(denied)


def claim_figures(prepared: PreparedClaims, doubtful: PreparedClaims) -> Iterator[Metric]:
    """The prepared claims of a node."""
    newer = sum(claim.version > VERSION for claim in doubtful.values())
    unreadable = len(doubtful) - newer
    yield from CLAIMS_PREPARED.single(len(prepared))
    yield DOUBTFUL_CLAIMS.of({("newer",): newer, ("unreadable",): unreadable})


def node_slot_figures(slots: Iterable[InstanceSlots], node: NodeName) -> Iterator[Metric]:
    """The slots that a node holds through the device plugin."""
    held = _Counts()
    for view in slots:
        held[(view.configuration,)] += len(view.held_by(node))
    yield SLOTS_HELD.of(held)


def cluster_slot_figures(slots: Iterable[InstanceSlots]) -> Iterator[Metric]:
    """The number of Instances, of their slots, and of used slots."""
    instances, total, used, akris = _Counts(), _Counts(), _Counts(), _Counts()
    for view in slots:
        name = view.configuration
        akris[name, str(view.shared).lower()] += 1
        for seen in (True, False):
            instances[name, str(seen).lower()] += bool(view.nodes) is seen
        total[(name,)] += view.capacity
        used[(name,)] += len(view.holders)
    yield from (INSTANCES.of(instances), SLOTS.of(total), SLOTS_USED.of(used))
    yield AKRI_INSTANCES.of(akris)


def broker_figures(pods: Iterable[Stored]) -> Iterator[Metric]:
    """The broker Pods of the cluster, by Configuration."""
    running, akris = _Counts(), _Counts()
    for pod in pods:
        for state in (True, False):
            is_so = (pod.phase == "Running") is state
            running[pod.configuration, str(state).lower()] += is_so
        akris[pod.configuration, pod.node] += 1
    yield from (BROKERS.of(running), AKRI_BROKERS.of(akris))
