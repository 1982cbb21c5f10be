"""What entries of Queues by measure, driver or selector are charged for a claim.

allocated       each definition that counts the device: exact, by the allocation and the slice
not allocated   the most that a device which the claim can get may cost, times the count
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from driver.api import DRIVER_NAME
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import Alternative, ClassName, Result
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.devices.device_facts import DeviceFacts
from scheduler_plugin.objects.devices.request_policies import consumed
from scheduler_plugin.objects.measures import Definition, Measure

_NO_FACTS = DeviceFacts()


def charged_by_measure(
    result: Result, name: ClassName, catalog: Catalog
) -> Iterator[tuple[ResourceKey, int]]:
    """What each definition that counts an allocated device is charged for it.

    Args:
        result: The device.
        name: The class that it was requested by.
        catalog: The definitions, and the devices of all slices.
    """
    if result.admin_access or catalog.is_exempt(name):
        return
    facts = catalog.device_table.of(result.device_id) or _NO_FACTS
    for definition in _counting(result, name, catalog):
        yield definition.key, _amount(result, definition.measure, facts)


def _counting(result: Result, name: ClassName, catalog: Catalog) -> Iterable[Definition]:
    is_ours = result.driver == DRIVER_NAME
    key = catalog.held_key(result.device_id, name) if is_ours else catalog.key(name)
    of_class = catalog.definitions.of_class(key) if key is not None else ()
    return (*catalog.definitions.of_driver(result.driver), *of_class)


def _amount(result: Result, measure: Measure, facts: DeviceFacts) -> int:
    if measure.capacity:
        used = dict(result.consumed).get(measure.capacity)
        return _has(facts, measure.capacity) if used is None else used
    return _counted(facts, measure) if measure.counter else result.slots or 1


def _has(facts: DeviceFacts, name: str) -> int:
    found = facts.capacity(name)
    return found.has if found is not None else 0


def _counted(facts: DeviceFacts, measure: Measure) -> int:
    return sum(
        found.amount
        for found in facts.counters
        if found.name == measure.counter and fnmatchcase(found.counter_set, measure.counter_set)
    )


def asked_by_measure(
    alternative: Alternative, count: int, catalog: Catalog
) -> Iterator[tuple[ResourceKey, int]]:
    """The most that each definition can be charged for a request, by all published devices."""
    if alternative.admin_access or catalog.is_exempt(alternative.device_class):
        return
    for definition in may_count(alternative.device_class, catalog):
        drivers = [definition.driver] if definition.driver else _drivers(alternative, catalog)
        kinds = (kind for driver in drivers for kind in catalog.device_table.kinds(driver))
        most = max((_at_most(kind, definition.measure, alternative) for kind in kinds), default=0)
        yield definition.key, count * most


def may_count(name: ClassName, catalog: Catalog) -> Iterator[Definition]:
    """The definitions that may count a device that is requested by a class.

    A class that demands no driver may select devices of any.
    """
    yield from catalog.definitions.of_class(catalog.key(name))
    view = catalog.class_named(name)
    demanded = view.drivers if view is not None else ()
    for driver in demanded or catalog.definitions.drivers():
        yield from catalog.definitions.of_driver(driver)


def _drivers(alternative: Alternative, catalog: Catalog) -> Iterable[str]:
    view = catalog.class_named(alternative.device_class)
    return (view.drivers if view is not None else ()) or catalog.device_table.drivers()


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
    return consumed(dict(alternative.capacity).get(measure.capacity), found.has, found.policy)
