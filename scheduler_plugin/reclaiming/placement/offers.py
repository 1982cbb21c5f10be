"""Devices as ResourceSlices offer them, and what a request asks of one device.

Only the slices of a pool's newest generation count, and only when all of them are known, as in
kube-scheduler. A request for all devices waits until they are.
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
from scheduler_plugin.objects.devices.device_facts import DeviceFacts
from scheduler_plugin.objects.devices.device_looks import cel_device, seen_in
from scheduler_plugin.objects.devices.selections import digest_of_look
from scheduler_plugin.objects.held_texts import Part
from scheduler_plugin.objects.node_selection import (
    EVERYWHERE,
    NodeTerms,
    node_terms,
    on_node,
    untolerated,
)
from scheduler_plugin.reclaiming.placement.device_parts import may_satisfy
from scheduler_plugin.reclaiming.placement.published_slices import PublishedDevice


@dataclass(frozen=True, slots=True)
class Offer:
    """A device of a slice, with the state of its pool. It costs little: nothing is decoded.

    Attributes:
        is_complete: Whether all slices of its pool are known.
        added: The taints that DeviceTaintRules add to those of its slice.
    """

    published: PublishedDevice
    is_complete: bool
    added: tuple[Taint, ...] = ()

    @property
    def device(self) -> DeviceId:
        return self.published.device

    @property
    def node(self) -> str:
        """The only node that can use it; "" where several nodes can."""
        return self.published.node

    @property
    def nodes(self) -> NodeTerms:
        """The nodes that can use it."""
        published = self.published
        return on_node(published.node) if published.node else selected_nodes(published.selector)

    @property
    def slots(self) -> int | None:
        """The number of slots that requests share; None where one request gets the whole device."""
        return self.published.slots

    @property
    def facts(self) -> DeviceFacts | None:
        """How much the device has; None for a device of Moorage."""
        return self.published.facts

    @property
    def divided(self) -> DeviceFacts | None:
        """How much it has if several claims may have parts of it, by capacity; else None."""
        return self.published.facts if self.published.is_divided else None

    @property
    def taints(self) -> tuple[Taint, ...]:
        return (*self.published.taints, *self.added) if self.added else self.published.taints

    @property
    def digest(self) -> int:
        """Equal for devices that look equal to CEL, in this process only."""
        return digest_of_look(self.published.text)

    @property
    def attributes(self) -> Mapping[str, JsonObject]:
        """The attributes as in the slice; read-only."""
        return seen_in(self.published.text).attributes

    @property
    def body(self) -> Mapping[str, Any]:
        """The device as CEL sees it."""
        return cel_device(self.published.text)

    def value_of(self, attribute: str) -> tuple[str, object] | None:
        """The type and value of an attribute, for `matchAttribute`; None where it has none.

        A name without a domain belongs to the driver's domain.
        """
        domain, _, name = attribute.partition("/")
        attributes = self.attributes
        found = attributes.get(attribute)
        if found is None and domain == self.device.driver:
            found = attributes.get(name)
        kinds = (kind for kind in ("string", "int", "bool", "version") if kind in (found or ()))
        return next(((kind, found[kind]) for kind in kinds), None) if found else None


class Constraint(NamedTuple):
    """A `matchAttribute` constraint of a claim: its index in the claim, and the attribute."""

    number: int
    attribute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCriteria:
    """The criteria that one device has to meet.

    Attributes:
        selectors: The CEL expressions of the class, and those of the request. They are evaluated
            apart, so that one user's request does not make another's slower. None stands for a
            selector of another kind.
        slots: The number of slots of a device with slots.
        names_slots: Whether the request names slots; only a device with slots can satisfy that.
        tolerations: The taints that the request tolerates.
        constraints: The `matchAttribute` constraints, shared with other requests of the claim.
        capacity: How much of other capacities than slots the request asks for, in thousandths.
    """

    selectors: tuple[tuple[str | None, ...], ...]
    slots: int
    names_slots: bool
    tolerations: tuple[Toleration, ...]
    constraints: tuple[Constraint, ...] = ()
    capacity: Part = ()

    def may_have(self, offer: Offer) -> bool:
        """Whether a device meets the criteria, apart from the selectors."""
        if offer.slots is None and self.names_slots:
            return False
        facts = offer.facts
        if self.capacity and facts is not None and not may_satisfy(facts, self.capacity):
            return False
        return offer.is_complete and not untolerated(offer.taints, self.tolerations)


def criteria_of(
    claim: ClaimView, alternative: Alternative, class_selectors: tuple[str | None, ...]
) -> DeviceCriteria:
    """The criteria of one alternative of a claim's request.

    What is not modelled is assumed to fit: constraints of other kinds than `matchAttribute`, and
    constraints of requests for all devices.
    """
    return DeviceCriteria(
        selectors=(class_selectors, alternative.selectors),
        slots=alternative.slots,
        # A device that shares other capacity too counts as one without slots.
        names_slots=alternative.names_slots and not alternative.odd_capacity,
        tolerations=alternative.tolerations,
        constraints=_agreements(claim, alternative) if claim.constraints else (),
        capacity=alternative.capacity,
    )


def _agreements(claim: ClaimView, alternative: Alternative) -> tuple[Constraint, ...]:
    """The constraints of a claim that concern an alternative, or its request."""
    if alternative.count is None:
        return ()
    names = {alternative.name, alternative.name.partition("/")[0]}
    return tuple(
        Constraint(number, found.attribute)
        for number, found in enumerate(claim.constraints)
        if found.attribute and (not found.requests or names.intersection(found.requests))
    )


def class_criteria(class_selectors: tuple[str | None, ...]) -> DeviceCriteria:
    """The criteria for a device that provides an extended resource."""
    return DeviceCriteria(selectors=(class_selectors,), slots=1, names_slots=False, tolerations=())


@lru_cache(maxsize=4_096)
def selected_nodes(selector: str | None) -> NodeTerms:
    """The nodes of a node selector, given as text; None for all nodes."""
    return EVERYWHERE if selector is None else node_terms(msgspec.json.decode(selector))
