"""Devices as slices offer them, and whether one of them would do for a request.

Only slices of a pool's newest generation count, and of a pool only when all of them are there, as
for kube-scheduler; whoever asks for all devices has to wait until they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduler_plugin.objects.claims import SLOTS_NAMES, Alternative, DeviceId
from scheduler_plugin.objects.devices.devices import expressions
from scheduler_plugin.objects.fields import JsonObject
from scheduler_plugin.objects.requests import whole
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
        attributes: As the slice has them.
        slots: How many several requests share at one time; None where one request has all of it.
        is_plain: Whether nothing else decides about it: no counters, no conditions of binding.
        is_complete: Whether all slices of its pool are there.
    """

    device: DeviceId
    node: str
    nodes: NodeTerms
    body: Mapping[str, Any]
    attributes: Mapping[str, JsonObject]
    slots: int | None
    taints: tuple[JsonObject, ...]
    is_plain: bool
    is_complete: bool

    def value_of(self, attribute: str) -> tuple[str, object] | None:
        """What devices have to agree about, with its type; None where it has no such value.

        A name without a domain is of its driver's.
        """
        domain, _, name = attribute.partition("/")
        found = self.attributes.get(attribute)
        if found is None and domain == self.device.driver:
            found = self.attributes.get(name)
        kinds = (kind for kind in ("string", "int", "bool", "version") if kind in (found or ()))
        return next(((kind, found[kind]) for kind in kinds), None) if found else None


class Constraint(NamedTuple):
    """What devices of one claim have to agree about: as the claim numbers it, and the attribute."""

    number: int
    attribute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """What is asked of one device.

    Attributes:
        selectors: CEL, of the class and of the request, which are evaluated apart: what one user
            writes costs nobody else's. None for what is no CEL.
        slots: How many of a device that has slots.
        names_slots: Whether it says so, which only a device with slots can satisfy.
        constraints: What the devices have to agree about, with those of other requests.
        doubt: Why it cannot be said which device would do; "" where it can.
    """

    selectors: tuple[tuple[str | None, ...], ...]
    slots: int
    names_slots: bool
    tolerations: tuple[JsonObject, ...] = field(hash=False)
    constraints: tuple[Constraint, ...] = ()
    doubt: str = ""

    def accepts(self, offer: Offer, *, satisfies: bool | None) -> bool | None:
        """Whether a device would do, were it free.

        None in doubt, and for one that nobody gets: it is no device that is asked for, unless all
        are.

        `satisfies` says whether it satisfies the selectors; None where that cannot be evaluated.
        """
        if offer.slots is None and self.names_slots:
            return False
        if not satisfies:
            return satisfies
        nobodys = not offer.is_complete or untolerated(offer.taints, self.tolerations)
        return None if nobodys else True


def device_request(
    claim: JsonObject, alternative: Alternative, class_selectors: tuple[str | None, ...]
) -> DeviceRequest:
    """What a claim asks of each device by one of its requests, or one of their alternatives."""
    devices = claim["spec"]["devices"]
    exactly = _named(devices["requests"], alternative.name)
    capacity = (exactly.get("capacity") or {}).get("requests") or {}
    odd = capacity.keys() - set(SLOTS_NAMES)
    constraints = _constraints(devices, alternative.name)
    return DeviceRequest(
        selectors=(class_selectors, expressions(exactly.get("selectors") or ())),
        slots=alternative.slots,
        names_slots=bool(capacity),
        tolerations=tuple(exactly.get("tolerations") or ()),
        constraints=tuple(Constraint(n, c.get("matchAttribute") or "") for n, c in constraints),
        doubt=_doubt(alternative, odd, [found for _, found in constraints]),
    )


def _constraints(devices: JsonObject, name: str) -> list[tuple[int, JsonObject]]:
    """Those that are about a request, or one of its alternatives, each with its number."""
    names = {name, name.partition("/")[0]}
    found = enumerate(devices.get("constraints") or ())
    return [(n, c) for n, c in found if not c.get("requests") or names & set(c["requests"])]


def _named(requests: Iterable[JsonObject], name: str) -> JsonObject:
    request, _, choice = name.partition("/")
    (found,) = (each for each in requests if each["name"] == request)
    choices = found.get("firstAvailable") or ()
    exactly: JsonObject = next(
        (each for each in choices if each["name"] == choice), found.get("exactly", {})
    )
    return exactly


def _doubt(
    alternative: Alternative, odd: Collection[str], constraints: Collection[JsonObject]
) -> str:
    if odd:
        return f"its capacity {min(odd)} is not looked at"
    for kind in (kind for found in constraints for kind in found.keys() - {"requests"}):
        if kind != "matchAttribute":
            return f"its {kind} is not looked at"
    if constraints and alternative.count is None:
        # kube-scheduler gives the pod up for this time as soon as some node's devices differ.
        return "it asks for all devices that agree, which is not looked at"
    return ""


def class_request(class_selectors: tuple[str | None, ...]) -> DeviceRequest:
    """What is asked of a device that stands for an extended resource."""
    return DeviceRequest(selectors=(class_selectors,), slots=1, names_slots=False, tolerations=())


def by_node(found: Mapping[DeviceId, Offer]) -> dict[str, list[DeviceId]]:
    """The devices of each node; under "" those that several can use."""
    nodes: dict[str, list[DeviceId]] = {}
    for device, offer in found.items():
        nodes.setdefault(offer.node, []).append(device)
    return nodes


def offers(slices: Iterable[JsonObject]) -> dict[DeviceId, Offer]:
    """The devices of all pools."""
    pools: dict[tuple[str, str], list[JsonObject]] = {}
    for obj in slices:
        spec = obj["spec"]
        pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec)
    found = (offer for specs in pools.values() for offer in _of_pool(specs))
    return {offer.device: offer for offer in found}


def _of_pool(specs: list[JsonObject]) -> Iterator[Offer]:
    newest = max(spec["pool"].get("generation") or 0 for spec in specs)
    now = [spec for spec in specs if (spec["pool"].get("generation") or 0) == newest]
    is_complete = len(now) == now[0]["pool"].get("resourceSliceCount")
    for spec in now:
        for device in spec.get("devices") or ():
            yield _offer(spec, device, is_complete=is_complete)


def _offer(spec: JsonObject, device: JsonObject, *, is_complete: bool) -> Offer:
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
        attributes=device.get("attributes") or {},
        slots=slots,
        taints=tuple(device.get("taints") or ()),
        is_plain=not any(device.get(field) for field in odd) and shares == (slots is not None),
        is_complete=is_complete,
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
