"""Devices: their nodes, their states, and the users of their slots.

A device is an entry of a ResourceSlice, which claims get, or an Instance whose slots are held
through the device plugin, as its `deviceUsage` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from driver.api import (
    DRIVER_NAME,
    OFFLINE_SINCE,
    OFFLINE_TAINT,
)
from driver.shapes.instance_taints import TaintRuleIndex
from driver.shapes.instances import NO_INSTANCE_SPEC, InstanceObject
from kube.shapes.claims import Claim
from kube.shapes.metadata import NO_METADATA
from kube.shapes.quantities import whole
from kube.shapes.reading import JsonObject, read_as
from kube.shapes.slices import (
    NO_CAPACITY,
    NO_POOL,
    NO_SPEC,
    Capacity,
    Device,
    DeviceTaint,
    Place,
    Slice,
    Spec,
)
from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.accounting.books_views import BooksView
from scheduler_plugin.objects.claim_objects import SLOTS_NAMES
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.devices.devices import instance_view, origin_of
from scheduler_plugin.objects.devices.resource_names import LEGACY_PREFIX
from scheduler_plugin.objects.names import NO_QUEUE, ClaimUid, QueueName
from scheduler_plugin.objects.node_selection import node_terms
from scheduler_plugin.viewing.divided_capacities import (
    Consumption,
    DividedCapacity,
    consumption,
    divided_capacities,
)

READY, OFFLINE, TAINTED = "Ready", "Offline", "Tainted"
EVERYWHERE = "*"

Path = Literal["DRA", "DevicePlugin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUser:
    """A claim or node that uses slots of a device.

    Attributes:
        what: The claim; or the node, for slots that its kubelet allocated.
        slots: The number of slots.
        payer: The queue that is charged; "" if there is none, or if it could be several.
        pods: The pods that use the claim; for a node, all of its pods that request such a device.
    """

    what: str
    slots: int
    payer: QueueName
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """One device on one path.

    Attributes:
        configuration: The Configuration; "" for a device of another driver.
        nodes: The nodes that can use it; `*` for all.
        state: Ready, Offline, or Tainted.
        detail: Since when it is offline, or its taints.
        slots: The number of its slots.
        used: How many slots are in use.
        capacities: The capacities that claims divide, of a device of another driver.
    """

    name: str
    path: Path
    driver: str
    pool: str
    configuration: str
    instance: str
    nodes: tuple[str, ...]
    state: str
    detail: str
    slots: int
    used: int
    users: tuple[DeviceUser, ...]
    capacities: tuple[DividedCapacity, ...] = ()


def device_rows(
    slices: Iterable[JsonObject],
    instances: Iterable[JsonObject],
    claims: Iterable[JsonObject],
    books: BooksView,
) -> list[DeviceRow]:
    """All devices, sorted by Configuration and name."""
    users, rules = _claim_users(claims, books), books.facts.catalog.taint_rules
    published = list(_published(slices, users, rules, consumption(books)))
    with_slices = {row.instance for row in published}
    held = [row for obj in instances if (row := _of_instance(obj, with_slices, books))]
    return sorted(
        [*published, *held], key=lambda row: (row.configuration, row.driver, row.name, row.path)
    )


def _claim_users(
    claims: Iterable[JsonObject], books: BooksView
) -> Mapping[DeviceId, list[DeviceUser]]:
    found: dict[DeviceId, list[DeviceUser]] = {}
    for obj in claims:
        metadata = read_as(Claim, obj).metadata or NO_METADATA
        view = books.facts.claim(ClaimUid(metadata.uid or ""))
        if view is None or view.results is None:
            continue
        entry = books.ledger.claim(view.uid)
        pods = tuple(f"{pod.namespace}/{pod.name}" for pod in books.facts.consumers(view))
        for result in view.results:
            user = DeviceUser(
                what=str(view),
                slots=0 if result.admin_access else result.slots or 1,
                payer=entry.owner if entry else NO_QUEUE,
                pods=pods,
            )
            found.setdefault(result.device_id, []).append(user)
    return found


def _published(
    slices: Iterable[JsonObject],
    users: Mapping[DeviceId, list[DeviceUser]],
    rules: TaintRuleIndex,
    consumed: Consumption,
) -> Iterator[DeviceRow]:
    """One row for each device, also if several slices list its nodes."""
    for key, device, nodes in _merged(slices):
        found = tuple(users.get(key, ()))
        configuration, instance = origin_of(device, key.driver)
        state, detail = _state(device.taints or (), rules.selecting(*key))
        yield DeviceRow(
            name=key.name,
            path="DRA",
            driver=key.driver,
            pool=key.pool,
            configuration=configuration,
            instance=instance,
            nodes=nodes,
            state=state,
            detail=detail,
            slots=_slots(device.capacity or {}),
            used=sum(user.slots for user in found),
            users=found,
            capacities=tuple(divided_capacities(key, device, consumed)),
        )


def _merged(
    slices: Iterable[JsonObject],
) -> Iterator[tuple[DeviceId, Device, tuple[str, ...]]]:
    """Each device of the newest generation of its pool, with the nodes of all its slices."""
    specs = [read_as(Slice, obj).spec or NO_SPEC for obj in slices]
    newest: dict[tuple[str, str], int] = {}
    for spec in specs:
        key = _pool(spec)
        newest[key] = max(newest.get(key, 0), _generation(spec))
    found: dict[DeviceId, tuple[Device, dict[str, None]]] = {}
    for spec in specs:
        if _generation(spec) < newest[_pool(spec)]:
            continue
        for device in spec.devices or ():
            named = DeviceId(*_pool(spec), device.name or "")
            _, nodes = found.setdefault(named, (device, {}))
            nodes.update(dict.fromkeys(_nodes(spec.place_of(device))))
    for named, (device, nodes) in found.items():
        yield named, device, tuple(sorted(nodes))


def _pool(spec: Spec) -> tuple[str, str]:
    return spec.driver or "", (spec.pool or NO_POOL).name or ""


def _generation(spec: Spec) -> int:
    return (spec.pool or NO_POOL).generation or 0


def _nodes(place: Place) -> list[str]:
    """The nodes that a slice or a device names; all nodes if it names none."""
    if place.node_name:
        return [place.node_name]
    terms = node_terms(place.node_selector).terms or ()
    values = [
        value
        for term in terms
        for one in (*(term.match_expressions or ()), *(term.match_fields or ()))
        for value in one.values or ()
    ]
    return values or [EVERYWHERE]


def _slots(capacity: Mapping[str, Capacity | None]) -> int:
    for name in SLOTS_NAMES:
        if name in capacity:
            return whole((capacity[name] or NO_CAPACITY).value) or 0
    return 1


def _state(taints: Iterable[DeviceTaint], rules: Iterable[DeviceTaintRule]) -> tuple[str, str]:
    others = []
    for taint in taints:
        if taint.key == OFFLINE_TAINT:
            return OFFLINE, f"since {taint.time_added or 'a while'}"
        others.append(f"{taint.key}:{taint.effect}")
    others += map(str, rules)
    return (TAINTED, ", ".join(others)) if others else (READY, "")


def _of_instance(obj: JsonObject, with_slices: set[str], books: BooksView) -> DeviceRow | None:
    """The row of an Instance; None if slices show it and no slot is held."""
    found = read_as(InstanceObject, obj)
    metadata, spec = found.metadata, found.spec or NO_INSTANCE_SPEC
    usage = {slot: user for slot, user in (spec.device_usage or {}).items() if user}
    name, configuration = metadata.name, spec.configuration_name or ""
    if name in with_slices and not usage:
        return None
    nodes = tuple(sorted(spec.nodes or ()))
    since = (metadata.annotations or {}).get(OFFLINE_SINCE, "")
    users = tuple(_slot_users(name, configuration, usage.values(), books))
    view = instance_view(found)
    rules = [rule for rule, _ in view.tainted_by(books.facts.catalog.taint_rules)]
    state, detail = _state((), rules)
    if not nodes:
        state, detail = OFFLINE, f"since {since}" if since else ""
    return DeviceRow(
        name=name,
        path="DevicePlugin",
        driver=DRIVER_NAME,
        pool="",
        configuration=configuration,
        instance=name,
        nodes=nodes,
        state=state,
        detail=detail,
        slots=spec.capacity or 0,
        used=len(usage),
        users=users,
    )


def _slot_users(
    instance: str, configuration: str, held: Iterable[str], books: BooksView
) -> Iterator[DeviceUser]:
    """The nodes that hold slots; only a kubelet knows which of the requesting pods has a slot."""
    counts: dict[tuple[str, str], int] = {}
    for value in held:
        by_configuration = value.startswith("C:")
        node = value.rpartition(":")[2] if by_configuration else value
        resource = f"{LEGACY_PREFIX}{configuration if by_configuration else instance}"
        counts[node, resource] = counts.get((node, resource), 0) + 1
    for (node, resource), count in sorted(counts.items()):
        asked = [
            pod
            for pod in books.facts.pods()
            if pod.node == node and not pod.ended and resource in dict(pod.requests)
        ]
        payers = {books.facts.charged_queue(pod) for pod in asked}
        yield DeviceUser(
            what=f"Node {node}",
            slots=count,
            payer=payers.pop() if len(payers) == 1 else NO_QUEUE,
            pods=tuple(sorted(f"{pod.namespace}/{pod.name}" for pod in asked)),
        )
