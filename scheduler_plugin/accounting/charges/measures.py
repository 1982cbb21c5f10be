"""What entries of Queues by measure, driver or selector are charged for a claim.

allocated       each definition that counts the device: exact, by the allocation and the slice
not allocated   the most that a device which the claim can get may cost, times the count

While a selector is not evaluated for a device, the device counts as selected, and
`open_groups` says what is to be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from driver.api import DRIVER_NAME
from scheduler_plugin.accounting.charges.gettable_devices import GettableDevices
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.charge_notes import noted_amount, noted_amounts
from scheduler_plugin.objects.claims import Alternative, ClaimView, ClassName, Result
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.devices.device_facts import DeviceFacts, ListedDevice, names_of
from scheduler_plugin.objects.devices.gettable import AtMost
from scheduler_plugin.objects.devices.open_looks import OpenGroup, is_refused, open_look
from scheduler_plugin.objects.devices.request_policies import consumed
from scheduler_plugin.objects.measures import Definition, Measure

_NO_FACTS = DeviceFacts()


def open_groups(claim: ClaimView, catalog: Catalog) -> Iterator[OpenGroup]:
    """What is to be evaluated before the charges of a claim are exact."""
    if claim.results is None:
        for request in claim.requests:
            for alternative in request.alternatives:
                yield from _open_groups_of(alternative, catalog)
        return
    classes = claim.classes_by_request
    for result in claim.results:
        if (name := classes.get(result.request)) is not None:
            yield from _open_groups_at(result, name, catalog)


# Allocated devices.


def charged_by_measure(
    result: Result, name: ClassName, catalog: Catalog, *, is_paid: bool = False, note: str = ""
) -> Iterator[tuple[ResourceKey, int]]:
    """What each definition that counts an allocated device is charged for it.

    Args:
        result: The device.
        name: The class that it was requested by.
        catalog: The definitions, and the devices of all slices.
        is_paid: Whether the device's counters are charged elsewhere.
        note: What is noted on the claim of devices that no slice lists any more.
    """
    for definition, amount in counted(result, name, catalog, note):
        if not (is_paid and definition.measure.counter):
            yield definition.key, amount


def counted(
    result: Result, name: ClassName, catalog: Catalog, note: str = ""
) -> Iterator[tuple[Definition, int]]:
    """The definitions that count an allocated device, each with the amount."""
    if result.admin_access or catalog.is_exempt(name):
        return
    listed = catalog.device_table.of(result.device_id)
    noted = noted_amounts(note, result.device_id) if listed is None else None
    for definition in _counting(result, name, catalog):
        if noted is not None and needs_slice(definition, result):
            yield definition, noted_amount(noted, definition.key)
        elif not _is_refused(definition, listed, catalog):
            facts = listed.facts if listed is not None else _NO_FACTS
            yield definition, _amount(result, definition.measure, facts)


def needs_slice(definition: Definition, result: Result) -> bool:
    """Whether the cost of a device is not known from the allocation alone."""
    measure = definition.measure
    is_consumed = _consumed(result, measure.capacity) is not None
    by_slice = bool(measure.counter or (measure.capacity and not is_consumed))
    return by_slice or bool(definition.selector)


def _open_groups_at(result: Result, name: ClassName, catalog: Catalog) -> Iterator[OpenGroup]:
    listed = catalog.device_table.of(result.device_id)
    if listed is None or result.admin_access or catalog.is_exempt(name):
        return
    for definition in _counting(result, name, catalog):
        if looks := tuple(open_look(definition.selectors, listed.look, catalog.selections)):
            yield OpenGroup(looks)


def _is_refused(definition: Definition, listed: ListedDevice | None, catalog: Catalog) -> bool:
    """Whether the selector says no; a device that no slice lists is not looked at."""
    if listed is None:
        return False
    return is_refused(definition.selectors, listed.look, catalog.selections)


def _counting(result: Result, name: ClassName, catalog: Catalog) -> Iterable[Definition]:
    is_ours = result.driver == DRIVER_NAME
    key = catalog.held_key(result.device_id, name) if is_ours else catalog.key(name)
    of_class = catalog.definitions.of_class(key) if key is not None else ()
    return (*catalog.definitions.of_driver(result.driver), *of_class)


def _amount(result: Result, measure: Measure, facts: DeviceFacts) -> int:
    if measure.capacity:
        used = _consumed(result, measure.capacity)
        return _has(facts, measure.capacity) if used is None else used
    return _counted(facts, measure) if measure.counter else result.slots or 1


def _consumed(result: Result, capacity: str) -> int | None:
    """What an allocation says that it consumes of a capacity; None if it does not say."""
    names = names_of(capacity, result.driver)
    return next((amount for name, amount in result.consumed if name in names), None)


def _has(facts: DeviceFacts, name: str) -> int:
    found = facts.capacity(name)
    return found.has if found is not None else 0


def _counted(facts: DeviceFacts, measure: Measure) -> int:
    return sum(
        found.amount
        for found in facts.counters
        if found.name == measure.counter and fnmatchcase(found.counter_set, measure.counter_set)
    )


# Requests.


def asked_by_measure(
    alternative: Alternative, count: int, catalog: Catalog
) -> Iterator[tuple[ResourceKey, int]]:
    """The most that each definition can be charged for a request, by the published devices."""
    if alternative.admin_access or catalog.is_exempt(alternative.device_class):
        return
    for definition in may_count(alternative.device_class, catalog):
        yield definition.key, count * _most(alternative, definition, catalog).cost


def may_count(name: ClassName, catalog: Catalog) -> Iterator[Definition]:
    """The definitions that may count a device that is requested by a class.

    A class that demands no driver may select devices of any; one that does not exist selects none.
    """
    yield from catalog.definitions.of_class(catalog.key(name))
    view = catalog.class_named(name)
    if view is None:
        return
    for driver in view.drivers or catalog.definitions.drivers():
        yield from catalog.definitions.of_driver(driver)


def _open_groups_of(alternative: Alternative, catalog: Catalog) -> Iterator[OpenGroup]:
    if alternative.admin_access or catalog.is_exempt(alternative.device_class):
        return
    for definition in may_count(alternative.device_class, catalog):
        if (group := _most(alternative, definition, catalog).open_group) is not None:
            yield group


def _most(alternative: Alternative, definition: Definition, catalog: Catalog) -> AtMost:
    request = definition, alternative.device_class, alternative.selectors, alternative.capacity
    return catalog.gettable.at_most(
        catalog.version, request, lambda: _gettable(alternative, definition, catalog).at_most()
    )


def _gettable(
    alternative: Alternative, definition: Definition, catalog: Catalog
) -> GettableDevices:
    view = catalog.class_named(alternative.device_class)
    demanded = view.drivers if view is not None else ()
    drivers = (definition.driver,) if definition.driver else demanded
    of_class = view.selectors if view is not None and not view.selects_driver_only else ()
    return GettableDevices(
        table=catalog.device_table,
        selections=catalog.selections,
        drivers=drivers or tuple(catalog.device_table.drivers()),
        selectors=(of_class, alternative.selectors, *definition.selectors),
        cost=lambda facts: _at_most(facts, definition.measure, alternative),
    )


def _at_most(facts: DeviceFacts, measure: Measure, alternative: Alternative) -> int:
    if measure.counter:
        return _counted(facts, measure)
    if not measure.capacity:
        return 1
    found = facts.capacity(measure.capacity)
    if found is None:
        return 0
    if not facts.is_divided:
        return found.has
    return consumed(dict(alternative.capacity).get(found.name), found.has, found.policy)
