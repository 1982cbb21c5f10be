"""What a node publishes: the devices it has, and those that went away and are still in use.

A device that nobody reports any more goes in three steps, each of which a restart may interrupt,
since all that is remembered stands in the ResourceSlice itself:

    reported ──► away: tainted, no new claim gets it ──► no claim has it, grace over ──► removed
        ▲                         │
        └──────── comes back ─────┘

A device is never removed in the step that taints it: a claim may have got it a moment before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from driver.api import (
    ATTRIBUTE_CONFIGURATION,
    ATTRIBUTE_INSTANCE,
    OFFLINE_TAINT,
    DeviceName,
)
from driver.configurations import NO_GRACE, offline_grace
from driver.instances import Instance
from driver.inventory import Inventory
from driver.names import attribute_value
from driver.resource_slices import SliceView
from driver.slices import Features, published

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """One device of the node's pool.

    Attributes:
        body: `Device` of resource.k8s.io/v1.
        instance: What the kubelet plugin prepares; None for what only a stored slice tells of.
        away_since: When its handler ceased to report it; None while it is reported.
    """

    body: Body
    instance: Instance | None = None
    away_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    """All devices of the node's pool at one moment.

    Attributes:
        unsettled: Whether another pass must follow this one's write.
        recheck_at: When a grace period ends; None where none runs.
    """

    offers: Mapping[DeviceName, Offer]
    unsettled: bool = False
    recheck_at: datetime | None = None

    @property
    def away(self) -> Mapping[DeviceName, Offer]:
        """The devices that are kept although nobody reports them."""
        return {n: o for n, o in self.offers.items() if o.away_since is not None}

    @property
    def away_instances(self) -> frozenset[str]:
        """Values of the attribute `instance` of the devices that are away."""
        return frozenset(_attribute(o.body, ATTRIBUTE_INSTANCE) for o in self.away.values())


def publication_of(bodies: Iterable[Body]) -> Publication:
    """What an earlier process published, as the stored slices show it."""
    offers = {DeviceName(body["name"]): Offer(body, None, _tainted_at(body)) for body in bodies}
    return Publication(offers)


def stored_devices(slices: Iterable[SliceView], pool: str) -> Iterator[Body]:
    """The devices of a pool as the API server has them, the newest version of each last."""
    ours = (view for view in slices if view.pool == pool)
    for view in sorted(ours, key=lambda view: view.generation):
        yield from (device.body({}) for device in view.content.devices)


def either(before: Publication, attempted: Publication) -> Publication:
    """What the API server may show after a write that failed: it may have been carried out."""
    return Publication({**attempted.offers, **before.offers})


def publish(
    inventory: Inventory,
    previous: Publication,
    features: Features,
    *,
    allocated: Collection[DeviceName] | None,
    now: datetime,
) -> Publication:
    """The next publication.

    Args:
        inventory: What the node has.
        previous: What was published last, by this process or the one before it.
        features: What the API server keeps of a device.
        allocated: Devices that some claim has; None while that is not known.
        now: For devices that went away since.
    """
    wanted = {
        device.name: Offer(device.body, device.instance)
        for device in published(inventory.local, features)
    }
    kept, frozen = _kept(inventory, previous, wanted, allocated, now), _frozen(inventory, previous)
    held_back = _held_back(wanted, kept, previous)
    offers = {**frozen, **kept, **{n: o for n, o in wanted.items() if n not in held_back}}
    return Publication(
        offers={name: _tainted(offers[name], features) for name in sorted(offers)},
        unsettled=any(offer.away_since == now for offer in kept.values()),
        recheck_at=_recheck_at(inventory, kept, allocated, now),
    )


def _frozen(inventory: Inventory, previous: Publication) -> dict[DeviceName, Offer]:
    unheard = {attribute_value(name) for name in inventory.unheard}
    reported = {attribute_value(instance.name) for instance in inventory.local}
    return {
        name: offer
        for name, offer in previous.offers.items()
        if _attribute(offer.body, ATTRIBUTE_CONFIGURATION) in unheard
        and _attribute(offer.body, ATTRIBUTE_INSTANCE) not in reported
    }


def _kept(
    inventory: Inventory,
    previous: Publication,
    wanted: Mapping[DeviceName, Offer],
    allocated: Collection[DeviceName] | None,
    now: datetime,
) -> dict[DeviceName, Offer]:
    frozen = _frozen(inventory, previous)
    kept: dict[DeviceName, Offer] = {}
    for name, offer in previous.offers.items():
        if name in wanted or name in frozen:
            continue
        since = offer.away_since or now
        free = allocated is not None and name not in allocated
        if offer.away_since is None or not free or now < since + _grace(inventory, offer):
            kept[name] = Offer(offer.body, _offline(offer.instance), since)
    return kept


def _offline(instance: Instance | None) -> Instance | None:
    return replace(instance, online=False) if instance else None


def _held_back(
    wanted: Mapping[DeviceName, Offer],
    kept: Mapping[DeviceName, Offer],
    previous: Publication,
) -> frozenset[DeviceName]:
    """New devices of an Instance that is still used under names of another capacity.

    Publishing both at once would offer more uses of it than it has.
    """
    busy = {_attribute(offer.body, ATTRIBUTE_INSTANCE) for offer in kept.values()}
    return frozenset(
        name
        for name, offer in wanted.items()
        if name not in previous.offers and _attribute(offer.body, ATTRIBUTE_INSTANCE) in busy
    )


def _recheck_at(
    inventory: Inventory,
    kept: Mapping[DeviceName, Offer],
    allocated: Collection[DeviceName] | None,
    now: datetime,
) -> datetime | None:
    ends = [
        offer.away_since + _grace(inventory, offer)
        for name, offer in kept.items()
        if offer.away_since is not None and name not in (allocated or ())
    ]
    return min((end for end in ends if end > now), default=None)


def _grace(inventory: Inventory, offer: Offer) -> timedelta:
    value = _attribute(offer.body, ATTRIBUTE_CONFIGURATION)
    for name, configuration in inventory.configurations.items():
        if attribute_value(name) == value:
            return offline_grace(configuration, shared=False)
    return NO_GRACE


def _attribute(body: Body, name: str) -> str:
    value = (body.get("attributes") or {}).get(name) or {}
    return str(value.get("string", ""))


def _tainted(offer: Offer, features: Features) -> Offer:
    if offer.away_since is None or not features.taints or _tainted_at(offer.body) is not None:
        return offer
    added = offer.away_since.strftime("%Y-%m-%dT%H:%M:%SZ")
    taint = {"key": OFFLINE_TAINT, "effect": "NoSchedule", "timeAdded": added}
    taints = [*(offer.body.get("taints") or ()), taint]
    return Offer({**offer.body, "taints": taints}, offer.instance, offer.away_since)


def _tainted_at(body: Body) -> datetime | None:
    for taint in body.get("taints") or ():
        if taint.get("key") == OFFLINE_TAINT and taint.get("timeAdded"):
            return datetime.fromisoformat(taint["timeAdded"])
    return None
