"""What a pool shows: the devices that are there, and those that went away and are still in use.

    Supply, previous Publication, claims ──publish──► Publication

A pool is a node's, or of the devices of one Configuration: those that one node sees, see
`local_pools`, or those that several see.

A device that nobody reports any more goes in three steps, each of which a restart may interrupt,
since all that is remembered stands in the ResourceSlice itself:

    reported ──► away: tainted, no new claim gets it ──► no claim has it, grace over ──► removed
        ▲                         │
        └──────── comes back ─────┘

A device is never removed in the step that taints it: a claim may have got it a moment before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from driver.api import (
    ATTRIBUTE_INSTANCE,
    OFFLINE_TAINT,
    ConfigurationName,
    DeviceName,
    InstanceName,
    TaintEffect,
)
from driver.configurations.configurations import offline_grace
from driver.derived import Deriving, derived
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.publishing.shown.deductions import HeldSlots
from driver.publishing.written.resource_slices import (
    Scope,
    SliceDevice,
    StoredSlice,
    seen_by,
    slice_device,
    with_scope,
)
from kube.shapes.times import time_of

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What there is for a pool to show.

    Attributes:
        instances: Those whose devices are reported now.
        unheard: Configurations of which not all is known now: what they published stays.
        graces: How long a device that went away stays though no claim has it, by Configuration;
            no time for one that is not named, nor where no taint keeps new claims from it.
        effects: Of the taint of a device that went away, by Configuration; where one is not
            named, the taint is left as it is.
        lingering: Instances whose devices are away, and stay for as long as they are named here.
        scopes: Who sees the device of an Instance, where that is not the same for the whole pool.
        held: Slots that pods have through the device plugin: uses that are not shown.
    """

    instances: tuple[Instance, ...] = ()
    unheard: frozenset[ConfigurationName] = frozenset()
    graces: Mapping[ConfigurationName, timedelta] = field(default_factory=dict)
    effects: Mapping[ConfigurationName, TaintEffect] = field(default_factory=dict)
    lingering: frozenset[InstanceName] = frozenset()
    scopes: Mapping[InstanceName, Scope] = field(default_factory=dict)
    held: HeldSlots = field(default_factory=dict)


def local_supply(inventory: Inventory) -> Supply:
    """What there is for the pool of a node."""
    configurations = inventory.configurations.items()
    return Supply(
        instances=inventory.local,
        unheard=inventory.unheard,
        graces={name: offline_grace(c, shared=False) for name, c in configurations},
        effects={name: c.offline_taint_effect for name, c in configurations},
    )


@dataclass(frozen=True, slots=True)
class Offer(Deriving):
    """One device of a pool.

    Attributes:
        body: `Device` of resource.k8s.io/v1.
        instance: What it is a use of; None for what only a stored slice tells of.
        away_since: When it ceased to be reported; None while it is.
        scope: Who sees it; None for those who see the others of the pool.
    """

    body: Body
    instance: Instance | None = None
    away_since: datetime | None = None
    scope: Scope | None = None

    @property
    def device(self) -> SliceDevice:
        """The body as the plan of a pool compares it."""
        return derived(self, _slice_device)

    def device_with(self, scope: Scope) -> SliceDevice:
        """The same, saying itself who sees it."""
        return derived(self, _device_with, scope)


def _slice_device(offer: Offer) -> SliceDevice:
    return slice_device(offer.body)


def _device_with(offer: Offer, scope: Scope) -> SliceDevice:
    return slice_device(with_scope(offer.body, scope))


@dataclass(frozen=True, slots=True)
class Publication(Deriving):
    """All devices of a pool at one moment.

    Attributes:
        unsettled: Whether another pass must follow this one's write, when it is known what claims
            got before it.
        recheck_at: When a grace period ends; None where none runs.
        counter_sets: What keeps devices of it apart, see `counters`.
    """

    offers: Mapping[DeviceName, Offer]
    unsettled: bool = False
    recheck_at: datetime | None = None
    counter_sets: tuple[Body, ...] = ()

    @property
    def away(self) -> Mapping[DeviceName, Offer]:
        """The devices that are kept although nobody reports them."""
        return {n: o for n, o in self.offers.items() if o.away_since is not None}

    @property
    def has_away(self) -> bool:
        """Whether there are any."""
        return any(offer.away_since is not None for offer in self.offers.values())

    @property
    def shown_instances(self) -> frozenset[str]:
        """Values of the attribute `instance` of its devices."""
        return frozenset(attribute_of(o.body, ATTRIBUTE_INSTANCE) for o in self.offers.values())


def publication_of(stored: Iterable[tuple[Body, Scope | None]]) -> Publication:
    """What an earlier process published, as the stored slices show it."""
    return Publication(
        {
            DeviceName(body["name"]): Offer(body, None, _tainted_at(body), scope)
            for body, scope in stored
        }
    )


def stored_devices(slices: Iterable[StoredSlice]) -> Iterator[tuple[Body, Scope | None]]:
    """The devices of a pool's slices, the newest version of each last."""
    for view in sorted(slices, key=lambda view: view.generation):
        yield from (seen_by(device.body({}), view.content.scope) for device in view.content.devices)


def either(before: Publication, attempted: Publication) -> Publication:
    """What the API server may show after a write that failed: it may have been carried out.

    Of a device that is away in one of them only, claims may have got it as it is in the other; of
    one that is there in both, as it is in the later, which keeps the slots of the former.
    """
    here = {name: offer for name, offer in before.offers.items() if offer.away_since is None}
    come = {name: offer for name, offer in attempted.offers.items() if offer.away_since is None}
    return Publication({**attempted.offers, **before.offers, **here, **come})


def claimable_instances(
    written: Publication, allocated: Collection[DeviceName] | None
) -> frozenset[str]:
    """Values of the attribute `instance` of the devices that claims have or may come to have.

    Args:
        written: All that the API server may show.
        allocated: Devices that some claim has; None while that is not known.
    """
    return frozenset(
        attribute_of(offer.body, ATTRIBUTE_INSTANCE)
        for name, offer in written.offers.items()
        if offer.away_since is None or allocated is None or name in allocated
    )


def attribute_of(body: Body, name: str) -> str:
    value = (body.get("attributes") or {}).get(name) or {}
    return str(value.get("string", ""))


def _tainted_at(body: Body) -> datetime | None:
    added = offline_taint_of(body).get("timeAdded")
    return time_of(added) if added else None


def offline_taint_of(body: Body) -> Mapping[str, str]:
    taints: Iterable[Mapping[str, str]] = body.get("taints") or ()
    return next((taint for taint in taints if taint.get("key") == OFFLINE_TAINT), {})
