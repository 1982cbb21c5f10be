"""Devices: where each is, in what state, and who uses which of its slots.

A device is what a ResourceSlice shows, which claims get; beside it an Instance whose slots are held
through the device plugin, as its `deviceUsage` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from driver.api import (
    ATTRIBUTE_CONFIGURATION,
    ATTRIBUTE_INSTANCE,
    CAPACITY_SLOTS,
    DRIVER_NAME,
    OFFLINE_SINCE,
    OFFLINE_TAINT,
)
from kube.shapes.reading import JsonObject
from scheduler_plugin.accounting.books_views import BooksView
from scheduler_plugin.objects.devices.catalog import LEGACY_PREFIX
from scheduler_plugin.objects.names import NO_QUEUE, ClaimUid, QueueName
from scheduler_plugin.objects.requests import whole

READY, OFFLINE, TAINTED = "Ready", "Offline", "Tainted"
EVERYWHERE = "*"

Path = Literal["DRA", "DevicePlugin"]
DeviceKey = tuple[str, str, str]
"""Driver, pool and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUser:
    """Who uses slots of a device.

    Attributes:
        what: The claim; or the node, for slots that a kubelet was given.
        slots: How many.
        payer: The queue that is charged; "" for none, or where several could be.
        pods: Those that use it; on a node all that asked for such a device.
    """

    what: str
    slots: int
    payer: QueueName
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """One device on one path.

    Attributes:
        configuration: "" for another driver's.
        nodes: Those that can use it; `*` for all.
        state: Ready, Offline, or Tainted.
        detail: Since when it is away, or its taints.
        slots: How many uses it has at one time.
        used: How many of them are in use.
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


def device_rows(
    slices: Iterable[JsonObject],
    instances: Iterable[JsonObject],
    claims: Iterable[JsonObject],
    books: BooksView,
) -> list[DeviceRow]:
    """All devices, by Configuration and name."""
    users = _claim_users(claims, books)
    shown = list(_published(slices, users))
    with_slices = {row.instance for row in shown}
    held = [row for obj in instances if (row := _of_instance(obj, with_slices, books))]
    return sorted(
        [*shown, *held], key=lambda row: (row.configuration, row.driver, row.name, row.path)
    )


def _claim_users(
    claims: Iterable[JsonObject], books: BooksView
) -> Mapping[DeviceKey, list[DeviceUser]]:
    found: dict[DeviceKey, list[DeviceUser]] = {}
    for obj in claims:
        view = books.facts.claim(ClaimUid(obj["metadata"].get("uid") or ""))
        allocation = (obj.get("status") or {}).get("allocation") or {}
        results = (allocation.get("devices") or {}).get("results") or ()
        if view is None or view.results is None:
            continue
        entry = books.ledger.claim(view.uid)
        pods = tuple(f"{pod.namespace}/{pod.name}" for pod in books.facts.consumers(view))
        for raw, result in zip(results, view.results, strict=False):
            user = DeviceUser(
                what=str(view),
                slots=0 if result.admin_access else result.slots or 1,
                payer=entry.owner if entry else NO_QUEUE,
                pods=pods,
            )
            key = (result.driver, raw.get("pool") or "", raw.get("device") or "")
            found.setdefault(key, []).append(user)
    return found


def _published(
    slices: Iterable[JsonObject], users: Mapping[DeviceKey, list[DeviceUser]]
) -> Iterator[DeviceRow]:
    """One row for each device, in however many slices its nodes are listed."""
    for spec, device, nodes in _merged(slices):
        driver, pool = _pool(spec)
        found = tuple(users.get((driver, pool, device["name"]), ()))
        state, detail = _state(device.get("taints") or ())
        yield DeviceRow(
            name=device["name"],
            path="DRA",
            driver=driver,
            pool=pool,
            configuration=_attribute(device, ATTRIBUTE_CONFIGURATION, driver),
            instance=_attribute(device, ATTRIBUTE_INSTANCE, driver),
            nodes=nodes,
            state=state,
            detail=detail,
            slots=_slots(device.get("capacity") or {}),
            used=sum(user.slots for user in found),
            users=found,
        )


def _merged(
    slices: Iterable[JsonObject],
) -> Iterator[tuple[JsonObject, JsonObject, tuple[str, ...]]]:
    """Each device of the newest generation of its pool, with the nodes of all its slices."""
    specs = [obj.get("spec") or {} for obj in slices]
    newest: dict[tuple[str, str], int] = {}
    for spec in specs:
        key = _pool(spec)
        newest[key] = max(newest.get(key, 0), (spec.get("pool") or {}).get("generation") or 0)
    found: dict[DeviceKey, tuple[JsonObject, JsonObject, dict[str, None]]] = {}
    for spec in specs:
        if ((spec.get("pool") or {}).get("generation") or 0) < newest[_pool(spec)]:
            continue
        for device in spec.get("devices") or ():
            entry = found.setdefault((*_pool(spec), device["name"]), (spec, device, {}))
            place = device if spec.get("perDeviceNodeSelection") else spec
            entry[2].update(dict.fromkeys(_nodes(place)))
    for spec, device, nodes in found.values():
        yield spec, device, tuple(sorted(nodes))


def _pool(spec: JsonObject) -> tuple[str, str]:
    return spec.get("driver") or "", (spec.get("pool") or {}).get("name") or ""


def _nodes(place: JsonObject) -> list[str]:
    """What a slice, or a device that says it itself, tells of who sees it."""
    if place.get("nodeName"):
        return [place["nodeName"]]
    terms = (place.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    values = [
        value
        for term in terms
        for one in (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
        for value in one.get("values") or ()
    ]
    return values or [EVERYWHERE]


def _attribute(device: JsonObject, name: str, driver: str) -> str:
    attributes = device.get("attributes") or {} if driver == DRIVER_NAME else {}
    return (attributes.get(name) or {}).get("string") or ""


def _slots(capacity: Mapping[str, Any]) -> int:
    for name in (CAPACITY_SLOTS, f"{DRIVER_NAME}/{CAPACITY_SLOTS}"):
        if name in capacity:
            return whole((capacity[name] or {}).get("value")) or 0
    return 1


def _state(taints: Iterable[JsonObject]) -> tuple[str, str]:
    others = []
    for taint in taints:
        if taint.get("key") == OFFLINE_TAINT:
            return OFFLINE, f"since {taint.get('timeAdded') or 'a while'}"
        others.append(f"{taint.get('key')}:{taint.get('effect')}")
    return (TAINTED, ", ".join(others)) if others else (READY, "")


def _of_instance(obj: JsonObject, with_slices: set[str], books: BooksView) -> DeviceRow | None:
    """Of an Instance that slices show as well only what is held counts."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    usage = {slot: user for slot, user in (spec.get("deviceUsage") or {}).items() if user}
    name, configuration = metadata["name"], spec.get("configurationName") or ""
    if name in with_slices and not usage:
        return None
    nodes = tuple(sorted(spec.get("nodes") or ()))
    since = (metadata.get("annotations") or {}).get(OFFLINE_SINCE) or ""
    users = tuple(_slot_users(name, configuration, usage.values(), books))
    return DeviceRow(
        name=name,
        path="DevicePlugin",
        driver=DRIVER_NAME,
        pool="",
        configuration=configuration,
        instance=name,
        nodes=nodes,
        state=READY if nodes else OFFLINE,
        detail=f"since {since}" if since and not nodes else "",
        slots=spec.get("capacity") or 0,
        used=len(usage),
        users=users,
    )


def _slot_users(
    instance: str, configuration: str, held: Iterable[str], books: BooksView
) -> Iterator[DeviceUser]:
    """Who holds slots: a kubelet knows for which pod; of those that asked there one is it."""
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
