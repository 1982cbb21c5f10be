"""The next publication of a pool: the devices that are present, and absent ones that are kept.

    Supply, previous Publication, claims ──publish──► Publication

`publication` says in which steps an absent device is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from driver.api import (
    ATTRIBUTE_CONFIGURATION,
    ATTRIBUTE_INSTANCE,
    OFFLINE_TAINT,
    DeviceName,
)
from driver.configurations.configurations import NO_GRACE
from driver.derived import derived
from driver.instances.instances import Instance
from driver.names import attribute_value
from driver.publishing.apply.resource_slices import (
    Scope,
)
from driver.publishing.desired.counters import Counters, counters_of
from driver.publishing.desired.deductions import Deductions
from driver.publishing.desired.publication import (
    Offer,
    Publication,
    Supply,
    attribute_of,
    offline_taint_of,
)
from driver.publishing.desired.slices import Features, PublishedDevice, published
from kube.shapes.times import timestamp


def _with_slots(offers: Mapping[DeviceName, Offer], features: Features) -> frozenset[DeviceName]:
    """The devices with slots, so that claims may have shares of them."""
    if not features.consumable_capacity:
        return frozenset()
    return frozenset(n for n, o in offers.items() if o.body.get("allowMultipleAllocations"))


def publish(
    supply: Supply,
    previous: Publication,
    features: Features,
    *,
    allocated: Collection[DeviceName] | None,
    now: datetime,
) -> Publication:
    """The next publication.

    Args:
        supply: The devices that are available.
        previous: The last publication, of this process or of the one before it.
        features: What the API server keeps of a device.
        allocated: Devices that some claim has; None while they are not known.
        now: The present, since when devices that are missing now count as absent.
    """
    deductions = Deductions(supply.held, previous.offers.keys())
    shares = _with_slots(previous.offers, features)
    wanted = {
        device.name: derived(device, _offer, supply.scopes.get(device.instance.name))
        for device in published(supply.instances, features, deductions, shares)
    }
    frozen, graces = _frozen(supply, previous), _Graces(supply, features)
    kept = _kept(previous, wanted.keys() | frozen.keys(), graces, allocated, now)
    held_back = _held_back(wanted, kept, previous)
    offers = {**frozen, **kept, **{n: o for n, o in wanted.items() if n not in held_back}}
    taints, counters = _Taints(supply, features), counters_of(_there(offers), features)
    return Publication(
        offers={n: _counted(taints.added_to(offers[n]), counters) for n in sorted(offers)},
        unsettled=any(offer.absent_since == now for offer in kept.values()),
        recheck_at=_recheck_at(kept, graces, allocated, now),
        counter_sets=counters.sets,
    )


def _there(offers: Mapping[DeviceName, Offer]) -> Iterator[Instance]:
    """The Instances of present devices, each once. Only a process that made them knows them."""
    found = (o.instance for o in offers.values() if o.instance and o.absent_since is None)
    return iter({(i.namespace, i.name): i for i in found}.values())


def _counted(offer: Offer, counters: Counters) -> Offer:
    body = counters.added_to(offer.body, None if offer.absent_since else offer.instance)
    return offer if body is offer.body else replace(offer, body=body)


def _offer(device: PublishedDevice, scope: Scope | None) -> Offer:
    return Offer(device.body, device.instance, scope=scope)


class _Graces:
    """How long absent devices stay that no claim has."""

    def __init__(self, supply: Supply, features: Features) -> None:
        graces = supply.graces if features.taints else {}
        self._graces = {attribute_value(name): grace for name, grace in graces.items()}
        self._lingering = set(map(attribute_value, supply.lingering if features.taints else ()))

    def end(self, offer: Offer, since: datetime) -> datetime | None:
        """When the device may be removed; None as long as its Instance stays."""
        if attribute_of(offer.body, ATTRIBUTE_INSTANCE) in self._lingering:
            return None
        return since + self._graces.get(attribute_of(offer.body, ATTRIBUTE_CONFIGURATION), NO_GRACE)

    def is_over(self, offer: Offer, since: datetime, now: datetime) -> bool:
        end = self.end(offer, since)
        return end is not None and end <= now


def _frozen(supply: Supply, previous: Publication) -> dict[DeviceName, Offer]:
    if not supply.unheard:
        return {}
    unheard = {attribute_value(name) for name in supply.unheard}
    reported = {attribute_value(instance.name) for instance in supply.instances}
    return {
        name: offer
        for name, offer in previous.offers.items()
        if attribute_of(offer.body, ATTRIBUTE_CONFIGURATION) in unheard
        and attribute_of(offer.body, ATTRIBUTE_INSTANCE) not in reported
    }


def _kept(
    previous: Publication,
    there: Collection[DeviceName],
    graces: _Graces,
    allocated: Collection[DeviceName] | None,
    now: datetime,
) -> dict[DeviceName, Offer]:
    kept: dict[DeviceName, Offer] = {}
    for name, offer in previous.offers.items():
        if name in there:
            continue
        since = offer.absent_since or now
        free = allocated is not None and name not in allocated
        if offer.absent_since is None or not free or not graces.is_over(offer, since, now):
            kept[name] = replace(offer, instance=_offline(offer.instance), absent_since=since)
    return kept


def _offline(instance: Instance | None) -> Instance | None:
    return replace(instance, online=False) if instance else None


def _held_back(
    wanted: Mapping[DeviceName, Offer],
    kept: Mapping[DeviceName, Offer],
    previous: Publication,
) -> frozenset[DeviceName]:
    """New devices of an Instance that is still in use under device names of another capacity.

    Publishing both would offer more uses than the Instance has.
    """
    busy = {attribute_of(offer.body, ATTRIBUTE_INSTANCE) for offer in kept.values()}
    if not busy:
        return frozenset()
    return frozenset(
        name
        for name, offer in wanted.items()
        if name not in previous.offers and attribute_of(offer.body, ATTRIBUTE_INSTANCE) in busy
    )


def _recheck_at(
    kept: Mapping[DeviceName, Offer],
    graces: _Graces,
    allocated: Collection[DeviceName] | None,
    now: datetime,
) -> datetime | None:
    ends = [
        graces.end(offer, offer.absent_since)
        for name, offer in kept.items()
        if offer.absent_since is not None and name not in (allocated or ())
    ]
    return min((end for end in ends if end is not None and end > now), default=None)


class _Taints:
    """The taints of absent devices, if the API server keeps taints."""

    def __init__(self, supply: Supply, features: Features) -> None:
        self._kept = features.taints
        self._effects = {attribute_value(name): effect for name, effect in supply.effects.items()}

    def added_to(self, offer: Offer) -> Offer:
        if offer.absent_since is None or not self._kept:
            return offer
        added = timestamp(offer.absent_since)
        taint = {"key": OFFLINE_TAINT, "effect": self._effect(offer), "timeAdded": added}
        others = (t for t in offer.body.get("taints") or () if t.get("key") != OFFLINE_TAINT)
        return replace(offer, body={**offer.body, "taints": [*others, taint]})

    def _effect(self, offer: Offer) -> str:
        asked = self._effects.get(attribute_of(offer.body, ATTRIBUTE_CONFIGURATION))
        return asked or offline_taint_of(offer.body).get("effect") or "NoSchedule"
