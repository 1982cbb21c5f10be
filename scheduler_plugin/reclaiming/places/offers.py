"""Devices as slices offer them, and whether one of them satisfies a request.

Only slices of a pool's newest generation count, and of a pool only when all of them are there, as
for kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_plugin.objects.claims import SLOTS_NAMES, Alternative, DeviceId
from scheduler_plugin.objects.devices.devices import expressions
from scheduler_plugin.objects.fields import JsonObject
from scheduler_plugin.objects.requests import whole
from scheduler_plugin.reclaiming.places.expressions import satisfies
from scheduler_plugin.reclaiming.places.node_selection import (
    EVERYWHERE,
    NodeTerms,
    node_terms,
    on_node,
    untolerated,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A device of a slice.

    Attributes:
        node: The node that alone can use it; "" where it is not one.
        nodes: Those that can.
        body: The device as CEL sees it.
        slots: How many several requests share at one time; None where one request has all of it.
        is_plain: Whether nothing else decides about it: no counters, no conditions of binding.
    """

    device: DeviceId
    node: str
    nodes: NodeTerms
    body: Mapping[str, Any]
    slots: int | None
    taints: tuple[JsonObject, ...]
    is_plain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """What is asked of one device.

    Attributes:
        selectors: CEL, of the class and of the request; None for what is no CEL.
        slots: How many of a device that has slots.
        names_slots: Whether it says so, which only a device with slots can satisfy.
        doubt: Why it cannot be said which device would do; "" where it can.
    """

    selectors: tuple[str | None, ...]
    slots: int
    names_slots: bool
    tolerations: tuple[JsonObject, ...] = field(hash=False)
    doubt: str = ""

    def accepts(self, offer: Offer) -> bool:
        """Whether a device would do for certain, were it free."""
        if self.doubt or not offer.is_plain or untolerated(offer.taints, self.tolerations):
            return False
        if offer.slots is None and self.names_slots:
            return False
        return all(text is not None and satisfies(text, offer.body) for text in self.selectors)


def device_request(
    claim: JsonObject, alternative: Alternative, class_selectors: tuple[str | None, ...]
) -> DeviceRequest:
    """What a claim asks of each device by one of its requests, or one of their alternatives."""
    devices = claim["spec"]["devices"]
    exactly = _named(devices["requests"], alternative.name)
    capacity = (exactly.get("capacity") or {}).get("requests") or {}
    odd = capacity.keys() - set(SLOTS_NAMES)
    return DeviceRequest(
        selectors=class_selectors + expressions(exactly.get("selectors") or ()),
        slots=alternative.slots,
        names_slots=bool(capacity),
        tolerations=tuple(exactly.get("tolerations") or ()),
        doubt=_doubt(odd, devices.get("constraints") or ()),
    )


def _named(requests: Iterable[JsonObject], name: str) -> JsonObject:
    request, _, choice = name.partition("/")
    (found,) = (each for each in requests if each["name"] == request)
    choices = found.get("firstAvailable") or ()
    exactly: JsonObject = next(
        (each for each in choices if each["name"] == choice), found.get("exactly", {})
    )
    return exactly


def _doubt(odd: Collection[str], constraints: Collection[JsonObject]) -> str:
    if odd:
        return f"its capacity {min(odd)} is not looked at"
    return "what its constraints demand of its devices is not looked at" if constraints else ""


def class_request(class_selectors: tuple[str | None, ...]) -> DeviceRequest:
    """What is asked of a device that stands for an extended resource."""
    return DeviceRequest(selectors=class_selectors, slots=1, names_slots=False, tolerations=())


def by_node(found: Mapping[DeviceId, Offer]) -> dict[str, list[DeviceId]]:
    """The devices of each node; under "" those that several can use."""
    nodes: dict[str, list[DeviceId]] = {}
    for device, offer in found.items():
        nodes.setdefault(offer.node, []).append(device)
    return nodes


def offers(slices: Iterable[JsonObject]) -> dict[DeviceId, Offer]:
    """The devices of all pools that are complete."""
    pools: dict[tuple[str, str], list[JsonObject]] = {}
    for obj in slices:
        spec = obj["spec"]
        pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec)
    found = (offer for specs in pools.values() for offer in _of_pool(specs))
    return {offer.device: offer for offer in found}


def _of_pool(specs: list[JsonObject]) -> Iterator[Offer]:
    newest = max(spec["pool"].get("generation") or 0 for spec in specs)
    now = [spec for spec in specs if (spec["pool"].get("generation") or 0) == newest]
    if len(now) == now[0]["pool"].get("resourceSliceCount"):
        for spec in now:
            for device in spec.get("devices") or ():
                yield _offer(spec, device)


def _offer(spec: JsonObject, device: JsonObject) -> Offer:
    place = device if spec.get("perDeviceNodeSelection") else spec
    node = place.get("nodeName") or ""
    capacity = device.get("capacity") or {}
    shares = bool(device.get("allowMultipleAllocations"))
    slots = _slots(capacity) if shares else None
    odd = ("consumesCounters", "bindingConditions", "bindingFailureConditions")
    return Offer(
        device=DeviceId(spec["driver"], spec["pool"]["name"], device["name"]),
        node=node,
        nodes=on_node(node) if node else _nodes(place),
        body=_body(spec["driver"], device),
        slots=slots,
        taints=tuple(device.get("taints") or ()),
        is_plain=not any(device.get(field) for field in odd) and shares == (slots is not None),
    )


def _nodes(place: JsonObject) -> NodeTerms:
    return EVERYWHERE if place.get("allNodes") else node_terms(place.get("nodeSelector") or {})


def _slots(capacity: JsonObject) -> int | None:
    """The slots of a device that shares nothing else; None of any other."""
    if len(capacity) != 1:
        return None
    ((name, found),) = capacity.items()
    return whole(found.get("value")) if name in SLOTS_NAMES else None


def _body(driver: str, device: JsonObject) -> dict[str, Any]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    return {
        "driver": driver,
        "attributes": _by_domain(driver, {k: _value(v) for k, v in attributes.items()}),
        "capacity": _by_domain(driver, {k: _opaque(v.get("value")) for k, v in capacity.items()}),
        "allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
    }


def _by_domain(driver: str, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A name without a domain is of its driver's."""
    found: dict[str, dict[str, Any]] = {driver: {}}
    for name, value in values.items():
        domain, slash, rest = name.partition("/")
        found.setdefault(domain if slash else driver, {})[rest if slash else name] = value
    return found


def _value(attribute: JsonObject) -> Any:
    for kind in ("string", "int", "bool"):
        if attribute.get(kind) is not None:
            return attribute[kind]
    return _opaque(attribute)


def _opaque(value: object) -> bytes:
    """What the library has no type for: no text and no number equals it."""
    return repr(value).encode()
