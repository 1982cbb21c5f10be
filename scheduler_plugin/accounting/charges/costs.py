"""The cost of a claim or of a pod's requests: exact after allocation, the maximum before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from driver.api import DRIVER_NAME
from scheduler_plugin.accounting.charges.measures import (
    asked_by_measure,
    charged_by_measure,
    may_count,
)
from scheduler_plugin.objects.amounts import (
    NO_CHARGES,
    Charges,
    ResourceKey,
    charges,
    most_of,
    summed,
)
from scheduler_plugin.objects.claims import (
    Alternative,
    ClaimView,
    ClassName,
    DeviceId,
    Result,
)
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.devices.resource_names import is_legacy
from scheduler_plugin.objects.pods import PodView


def is_accounted(claim: ClaimView, catalog: Catalog) -> bool:
    """Whether the claim is charged to queues.

    Administrative access takes no device from other pods: a claim that asks for nothing else of
    accounted classes needs no queue and no owner.
    """
    asked = (
        not alternative.admin_access and catalog.accounted_key(alternative.device_class) is not None
        for request in claim.requests
        for alternative in request.alternatives
    )
    if any(asked) or any(not result.admin_access for result, _ in _charged(claim, catalog)):
        return True
    return bool(catalog.definitions) and _is_measured(claim, catalog)


def _is_measured(claim: ClaimView, catalog: Catalog) -> bool:
    """Whether an entry of a Queue may count its devices, or counts those that it has."""
    if claim.results is not None:
        return any(True for _ in _by_measure(claim, catalog))
    return any(
        not alternative.admin_access and any(True for _ in may_count(name, catalog))
        for request in claim.requests
        for alternative in request.alternatives
        if not catalog.is_exempt(name := alternative.device_class)
    )


def may_be_accounted(claim: ClaimView, catalog: Catalog) -> bool:
    """Whether the claim is charged to queues, or may be once it is allocated or reallocated."""
    return is_accounted(claim, catalog) or any(map(catalog.may_be_ours, claim.classes))


def claim_cost(claim: ClaimView, catalog: Catalog, paid: Set[DeviceId] = frozenset()) -> Charges:
    """The exact cost of an allocated claim; the maximum cost of an unallocated one.

    Args:
        claim: The claim.
        catalog: The classes, definitions and devices.
        paid: Devices whose counters another claim is charged for.
    """
    if claim.results is None:
        return _at_most(claim, catalog)
    return _exactly(claim, catalog, paid)


def _exactly(claim: ClaimView, catalog: Catalog, paid: Set[DeviceId]) -> Charges:
    amounts: dict[ResourceKey, int] = {}
    for result, key in _charged(claim, catalog):
        amounts[key] = amounts.get(key, 0) + _uses(result)
    if catalog.definitions:
        for key, amount in _by_measure(claim, catalog, paid):
            amounts[key] = amounts.get(key, 0) + amount
    return charges(amounts)


def _by_measure(
    claim: ClaimView, catalog: Catalog, paid: Set[DeviceId] = frozenset()
) -> Iterator[tuple[ResourceKey, int]]:
    """A device that a claim has twice consumes its counters once."""
    counted = {*paid}
    classes = claim.classes_by_request
    for result in claim.results or ():
        if (name := classes.get(result.request)) is not None:
            yield from charged_by_measure(
                result,
                name,
                catalog,
                is_paid=result.device_id in counted,
                note=claim.charge_note,
            )
            counted.add(result.device_id)


def _charged(claim: ClaimView, catalog: Catalog) -> Iterator[tuple[Result, ResourceKey]]:
    """The accounted devices of a claim, each with its key."""
    if not claim.results:
        return
    classes = claim.classes_by_request
    for result in claim.results:
        name = classes.get(result.request)
        key = _key(result, name, catalog) if name is not None else None
        if key is not None:
            yield result, key


def _key(result: Result, name: ClassName, catalog: Catalog) -> ResourceKey | None:
    """The key of a device; for Moorage's own devices it does not depend on the class alone."""
    if result.driver == DRIVER_NAME:
        return catalog.held_key(result.device_id, name)
    return catalog.accounted_key(name)


def _uses(result: Result) -> int:
    if result.admin_access:
        return 0
    return result.slots if result.driver == DRIVER_NAME and result.slots is not None else 1


def _at_most(claim: ClaimView, catalog: Catalog) -> Charges:
    return summed(map(most_of, costs_by_request(claim, catalog)))


def costs_by_request(claim: ClaimView, catalog: Catalog) -> Iterator[tuple[Charges, ...]]:
    """The maximum cost of each alternative of each request, before the allocation."""
    for request in claim.requests:
        yield tuple(_alternative_cost(each, catalog) for each in request.alternatives)


def _alternative_cost(alternative: Alternative, catalog: Catalog) -> Charges:
    if alternative.admin_access:
        return NO_CHARGES
    name, count = alternative.device_class, alternative.count
    if count is None:
        count = catalog.devices(name)
    key, amounts = catalog.asked_key(name), dict[ResourceKey, int]()
    if key is not None:
        amounts[key] = count * (alternative.slots if catalog.may_have_slots(name) else 1)
    if catalog.definitions:
        amounts |= asked_by_measure(alternative, count, catalog)
    return charges(amounts)


def granted_cost(pod: PodView, catalog: Catalog) -> Charges:
    """The cost of a bound pod's requests beside its claims: devices of the device plugin.

    Resources that `extendedResourceClaimStatus` covers are charged through that claim. Resources of
    other vendors that no claim covers were served by their own device plugins.
    """
    return _requests_cost(
        pod, lambda name: catalog.accounted_resource(name) if is_legacy(name) else None
    )


def asked_cost(pod: PodView, catalog: Catalog) -> Charges:
    """The maximum cost of a pod's requests beside its claims, before it has a node.

    The node decides whether a device plugin or DRA serves them.
    """
    return _requests_cost(pod, catalog.asked_resource)


def _requests_cost(pod: PodView, key_of: Callable[[str], ResourceKey | None]) -> Charges:
    amounts: dict[ResourceKey, int] = {}
    for resource, amount in pod.uncovered:
        key = key_of(resource)
        if key is not None:
            amounts[key] = amounts.get(key, 0) + amount
    return charges(amounts) if amounts else NO_CHARGES
