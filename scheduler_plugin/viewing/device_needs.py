"""The devices that a pod needs before it can be bound, by DeviceClass or extended resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.claims import Alternative, ClassName
from scheduler_plugin.objects.devices.resource_names import is_legacy
from scheduler_plugin.objects.names import ClaimUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.requests import IMPLICIT_PREFIX


class Wanted(NamedTuple):
    """One kind of device.

    Attributes:
        device_class: The DeviceClass; "" for a resource of the device plugin.
        resource: A resource of the device plugin, `akri.sh/<Configuration>` or
            `akri.sh/<Instance>`; else "".
        slots: How many slots of each device.
    """

    device_class: ClassName
    resource: str = ""
    slots: int = 1

    def __str__(self) -> str:
        if self.resource:
            return f"resource {self.resource}"
        return f'DeviceClass "{self.device_class}"'


class Need(NamedTuple):
    """A number of devices of one kind, on one node."""

    wanted: Wanted
    devices: int


Choice = tuple[Need, ...]
"""The alternatives of a request: one of them is enough."""


def device_needs(
    pod: PodView, facts: FactsView, counted: Collection[ClaimUid] = ()
) -> Iterator[Choice]:
    """What a pod needs beside the devices that its claims have; an absent claim needs nothing.

    A request for all devices of a node needs none, since their number depends on the node. A
    request with tolerations needs none, since it may get an absent device.

    Args:
        pod: A waiting pod.
        facts: All that is known.
        counted: Claims that need nothing more: another pod that shares them was counted.
    """
    pod = facts.without_lost_claim(pod)
    exact: Counter[Wanted] = Counter()
    for claim in facts.claims_of(pod):
        is_needed = not claim.is_allocated and claim.uid not in counted
        for request in claim.requests if is_needed else ():
            needs = [_need(alternative) for alternative in request.alternatives]
            found = tuple(need for need in needs if need is not None)
            if len(found) == len(needs) > 1:
                yield found
            elif len(found) == len(needs):
                exact[found[0].wanted] += found[0].devices
    for resource, amount in pod.uncovered:
        if (wanted := _of_resource(resource, facts)) is not None:
            exact[wanted] += amount
    for wanted, devices in exact.items():
        yield (Need(wanted, devices),)


def _need(alternative: Alternative) -> Need | None:
    """The need of an alternative; None if it may be met without a free, present device."""
    if alternative.admin_access or alternative.tolerations or not alternative.count:
        return None
    wanted = Wanted(alternative.device_class, slots=alternative.slots)
    return Need(wanted, alternative.count)


def _of_resource(resource: str, facts: FactsView) -> Wanted | None:
    """The device of a resource; None for CPU, and for resources of other device plugins.

    A node may offer a resource through a device plugin although a class maps to it.
    """
    name = facts.catalog.resource_class(resource)
    view = facts.catalog.class_named(name) if name is not None else None
    if name is not None and (resource.startswith(IMPLICIT_PREFIX) or (view and view.is_ours)):
        return Wanted(name)
    return Wanted(ClassName(""), resource) if is_legacy(resource) else None
