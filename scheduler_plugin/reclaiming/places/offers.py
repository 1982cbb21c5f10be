"""Devices as slices offer them, and whether one of them would do for a request.

Only slices of a pool's newest generation count, and of a pool only when all of them are there, as
for kube-scheduler; whoever asks for all devices has to wait until they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from kube.shapes.reading import JsonObject
from kube.shapes.selection import Taint, Toleration
from scheduler_plugin.objects.claims import Alternative, ClaimView, DeviceId
from scheduler_plugin.objects.node_selection import (
    EVERYWHERE,
    NodeTerms,
    node_terms,
    on_node,
    untolerated,
)
from scheduler_plugin.reclaiming.places.published_slices import (
    PublishedDevice,
    Seen,
    seen_in,
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A device of a slice, as its pool is at one moment. It costs little: nothing is decoded.

    Attributes:
        is_complete: Whether all slices of its pool are there.
    """

    published: PublishedDevice
    is_complete: bool

    @property
    def device(self) -> DeviceId:
        return self.published.device

    @property
    def node(self) -> str:
        """The node that alone can use it; "" where it is not one."""
        return self.published.node

    @property
    def nodes(self) -> NodeTerms:
        """Those that can use it."""
        published = self.published
        return on_node(published.node) if published.node else selected_nodes(published.selector)

    @property
    def slots(self) -> int | None:
        """How many several requests share at one time; None where one request has all of it."""
        return self.published.slots

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.published.taints

    @property
    def digest(self) -> int:
        """Equal for devices that CEL cannot tell apart, in this process.

        Python keys this hash anew in every process, so no user can make two texts that share it.
        """
        return hash(self.published.text)

    @property
    def attributes(self) -> Mapping[str, JsonObject]:
        """As the slice has them; to be read only."""
        return seen_in(self.published.text).attributes

    @property
    def body(self) -> Mapping[str, Any]:
        """The device as CEL sees it."""
        return _body(seen_in(self.published.text))

    def value_of(self, attribute: str) -> tuple[str, object] | None:
        """What devices have to agree about, with its type; None where it has no such value.

        A name without a domain is of its driver's.
        """
        domain, _, name = attribute.partition("/")
        attributes = self.attributes
        found = attributes.get(attribute)
        if found is None and domain == self.device.driver:
            found = attributes.get(name)
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
    """

    selectors: tuple[tuple[str | None, ...], ...]
    slots: int
    names_slots: bool
    tolerations: tuple[Toleration, ...]
    constraints: tuple[Constraint, ...] = ()

    def may_have(self, offer: Offer) -> bool:
        """Whether any request of this kind gets a device, apart from what selectors say of it."""
        if offer.slots is None and self.names_slots:
            return False
        return offer.is_complete and not untolerated(offer.taints, self.tolerations)


def request_of(
    claim: ClaimView, alternative: Alternative, class_selectors: tuple[str | None, ...]
) -> DeviceRequest:
    """What a claim asks of each device by one of its alternatives.

    What is not modelled is assumed to fit: other capacity than slots, constraints of other kinds
    than `matchAttribute`, and constraints where all devices are asked for.
    """
    return DeviceRequest(
        selectors=(class_selectors, alternative.selectors),
        slots=alternative.slots,
        # A device that shares other capacity too counts as one without slots.
        names_slots=alternative.names_slots and not alternative.odd_capacity,
        tolerations=alternative.tolerations,
        constraints=_agreements(claim, alternative) if claim.constraints else (),
    )


def _agreements(claim: ClaimView, alternative: Alternative) -> tuple[Constraint, ...]:
    """Those of a claim that are about an alternative, or its request."""
    if alternative.count is None:
        return ()
    names = {alternative.name, alternative.name.partition("/")[0]}
    return tuple(
        Constraint(number, found.attribute)
        for number, found in enumerate(claim.constraints)
        if found.attribute and (not found.requests or names.intersection(found.requests))
    )


def class_request(class_selectors: tuple[str | None, ...]) -> DeviceRequest:
    """What is asked of a device that stands for an extended resource."""
    return DeviceRequest(selectors=(class_selectors,), slots=1, names_slots=False, tolerations=())


@lru_cache(maxsize=4_096)
def selected_nodes(selector: str | None) -> NodeTerms:
    """The nodes of devices that several can use, by the selector's text; None for all."""
    return EVERYWHERE if selector is None else node_terms(msgspec.json.decode(selector))


def _body(seen: Seen) -> dict[str, Any]:
    driver = seen.driver
    return {
        "driver": driver,
        "attributes": _by_domain(driver, {k: _value(v) for k, v in seen.attributes.items()}),
        "capacity": _by_domain(driver, {k: _opaque(v) for k, v in seen.capacity.items()}),
        "allowMultipleAllocations": seen.is_shared,
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
