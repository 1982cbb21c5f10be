"""Publication: the devices of a pool, present ones and absent ones that are still in use.

    Supply, previous Publication, claims ──next_publication.publish──► Publication

A pool belongs to a node, or to the devices of one Configuration: those that one node sees, see
`local_pools`, or those that several nodes see, see `shared_pools`.

A device that no handler reports any more is removed in three steps. A restart may come between
them, since all state is in the ResourceSlice itself:

    reported ──► absent: tainted, no new claim gets it ──► no claim has it, grace over ──► removed
        ▲                         │
        └──────── comes back ─────┘

A device is never removed in the step that taints it: a claim may have got it just before.
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
from driver.publishing.apply.resource_slices import (
    Scope,
    SliceDevice,
    StoredSlice,
    seen_by,
    slice_device,
    with_scope,
)
from driver.publishing.desired.deductions import HeldSlots
from kube.shapes.times import time_of

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """The devices that are available for a pool.

    Attributes:
        instances: The Instances whose devices are reported now.
        unheard: Configurations whose devices are not all known now. Their published devices stay.
        graces: How long an absent device stays although no claim has it, by Configuration. A
            Configuration that is missing here has no grace period. Without taints there is none
            either.
        effects: Effect of the taint of an absent device, by Configuration. The taint stays as it
            is for a Configuration that is missing here.
        lingering: Instances with absent devices that stay as long as they are named here.
        scopes: The nodes that see the device of an Instance, if they differ from the pool's.
        held: Slots that pods hold through the device plugin. These uses are not published.
    """

    instances: tuple[Instance, ...] = ()
    unheard: frozenset[ConfigurationName] = frozenset()
    graces: Mapping[ConfigurationName, timedelta] = field(default_factory=dict)
    effects: Mapping[ConfigurationName, TaintEffect] = field(default_factory=dict)
    lingering: frozenset[InstanceName] = frozenset()
    scopes: Mapping[InstanceName, Scope] = field(default_factory=dict)
    held: HeldSlots = field(default_factory=dict)


def local_supply(inventory: Inventory) -> Supply:
    """The supply of the pool of a node."""
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
        instance: The Instance that it is a use of; None if only a stored slice names the device.
        absent_since: When the handler ceased to report it; None while it is reported.
        scope: The nodes that see it; None for the scope of the pool.
    """

    body: Body
    instance: Instance | None = None
    absent_since: datetime | None = None
    scope: Scope | None = None

    @property
    def device(self) -> SliceDevice:
        """The body as the plan of a pool compares it."""
        return derived(self, _slice_device)

    def device_with(self, scope: Scope) -> SliceDevice:
        """The device with a scope of its own."""
        return derived(self, _device_with, scope)


def _slice_device(offer: Offer) -> SliceDevice:
    return slice_device(offer.body)


def _device_with(offer: Offer, scope: Scope) -> SliceDevice:
    return slice_device(with_scope(offer.body, scope))


@dataclass(frozen=True, slots=True)
class Publication(Deriving):
    """All devices of a pool at one moment.

    Attributes:
        offers: The devices by name.
        unsettled: Whether the allocations must be read again after this publication is written:
            it taints devices that claims may have got just before.
        recheck_at: When the next grace period ends; None if none runs.
        counter_sets: The counter sets that keep rivals apart, see `counters`.
    """

    offers: Mapping[DeviceName, Offer]
    unsettled: bool = False
    recheck_at: datetime | None = None
    counter_sets: tuple[Body, ...] = ()

    @property
    def absent(self) -> Mapping[DeviceName, Offer]:
        """The devices that are kept although no handler reports them."""
        return {n: o for n, o in self.offers.items() if o.absent_since is not None}

    @property
    def has_absent(self) -> bool:
        """Whether any device is kept although no handler reports it."""
        return any(offer.absent_since is not None for offer in self.offers.values())

    @property
    def shown_instances(self) -> frozenset[str]:
        """Values of the attribute `instance` of its devices."""
        return frozenset(attribute_of(o.body, ATTRIBUTE_INSTANCE) for o in self.offers.values())


def publication_of(stored: Iterable[tuple[Body, Scope | None]]) -> Publication:
    """The publication of an earlier process, restored from the stored slices."""
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
    """What the API server may have after a write that failed, since it may have been carried out.

    If a device is absent in one of the two only, claims may have got it as it is in the other. If
    it is present in both, they may have got it as it is in the later one, which keeps the slots of
    the earlier one.
    """
    here = {name: offer for name, offer in before.offers.items() if offer.absent_since is None}
    come = {name: offer for name, offer in attempted.offers.items() if offer.absent_since is None}
    return Publication({**attempted.offers, **before.offers, **here, **come})


def claimable_instances(
    written: Publication, allocated: Collection[DeviceName] | None
) -> frozenset[str]:
    """Values of the attribute `instance` of the devices that claims have or may come to have.

    Args:
        written: All that the API server may have.
        allocated: Devices that some claim has; None while they are not known.
    """
    return frozenset(
        attribute_of(offer.body, ATTRIBUTE_INSTANCE)
        for name, offer in written.offers.items()
        if offer.absent_since is None or allocated is None or name in allocated
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
