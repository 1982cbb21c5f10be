"""Whether each entry of the Queues is understood, and counts something that exists."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from kube.words import some_of
from scheduler_plugin.accounting.queues.name_conflicts import name_conflicts
from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.checking.setups import (
    Finding,
    Level,
    Objects,
    Setup,
    Unread,
    name_of,
    unread,
)
from scheduler_plugin.models import queue_problems
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.devices.device_facts import DeviceFacts
from scheduler_plugin.objects.devices.devices import class_view, slice_view
from scheduler_plugin.objects.measures import Definition, Measure
from scheduler_plugin.objects.names import Queue
from scheduler_plugin.objects.queue_objects import parse_queue

PART = "entries"
_VERSION = (
    "Run the version of Moorage that wrote it, or remove the field. Until then no pod with"
    " accounted devices is bound."
)
_WRITTEN_UNCHECKED = "The webhook refuses this now: it was written while the webhook was away."


def judge_entries(setup: Setup) -> Iterator[Finding]:
    """One finding for each faulty entry, else one for all."""
    if isinstance(setup.queues, Unread):
        return  # `judge_queues` says so.
    queues = list(readable_queues(setup.queues))
    flaws = [*_misread(queues), *_refused(setup, queues), *_counting_nothing(setup, queues)]
    yield from flaws
    if isinstance(setup.invalid_selectors, Unread):
        yield unread(PART, setup.invalid_selectors)
    elif any(queue.shares for queue in queues) and not flaws:
        yield Finding(Level.OK, PART, "All entries of Queues are understood.")


def readable_queues(queues: Objects) -> Iterator[Queue]:
    """The Queues, without those that the definition would refuse as a whole."""
    for body in () if isinstance(queues, Unread) else queues:
        try:
            yield parse_queue(body)
        except ValueError:
            continue


def selectors_of(queues: Objects) -> Iterator[str]:
    """The selectors of all entries of Queues."""
    for queue in readable_queues(queues):
        for share in queue.shares.values():
            if share.definition is not None and share.definition.selector:
                yield share.definition.selector


def _misread(queues: list[Queue]) -> Iterator[Finding]:
    for queue in queues:
        for said in queue.misread:
            yield Finding(Level.ERROR, PART, f"Queue {queue.name}: {said}", _VERSION)


def _refused(setup: Setup, queues: list[Queue]) -> Iterator[Finding]:
    """What the webhook would refuse: within one Queue, and in a tree."""
    misread = {queue.name for queue in queues if queue.misread}
    for body in () if isinstance(setup.queues, Unread) else setup.queues:
        written = {part: body[part] for part in ("metadata", "spec") if part in body}
        for problem in queue_problems(written) if name_of(body) not in misread else ():
            said = f"Queue {name_of(body)}: {problem}"
            yield Finding(Level.WARNING, PART, said, _WRITTEN_UNCHECKED)
    tree = QueueTree()
    for queue in queues:
        tree.put(queue)
    for said in name_conflicts(tree):
        yield Finding(Level.WARNING, PART, said, _WRITTEN_UNCHECKED)


def _counting_nothing(setup: Setup, queues: list[Queue]) -> Iterator[Finding]:
    catalog = _catalog(setup)
    for queue in queues:
        for key, share in queue.shares.items():
            if (definition := share.definition) is not None:
                about = f'Queue {queue.name}: Entry "{key}"'
                yield from _selector_flaws(setup, about, definition)
                if catalog is not None:
                    yield from _measure_flaws(about, definition, catalog)


def _selector_flaws(setup: Setup, about: str, definition: Definition) -> Iterator[Finding]:
    invalid = setup.invalid_selectors
    if not isinstance(invalid, Unread) and definition.selector in invalid:
        said = f"{about} has a selector that is no valid CEL, so it counts all devices:"
        mend = "Correct it: it is written as in a DeviceClass."
        yield Finding(Level.WARNING, PART, f"{said} {definition.selector}", mend)


def _catalog(setup: Setup) -> Catalog | None:
    """The published devices; None if they were not read."""
    if isinstance(setup.classes, Unread) or isinstance(setup.slices, Unread):
        return None
    catalog = Catalog(lambda _: True)
    for body in setup.classes:
        catalog.put_class(class_view(body))
    for body in setup.slices:
        catalog.put_slice(slice_view(body))
    return catalog


def _measure_flaws(about: str, definition: Definition, catalog: Catalog) -> Iterator[Finding]:
    measure, drivers = definition.measure, _drivers(definition, catalog)
    if measure.is_of_devices:
        return
    kinds = [kind for driver in drivers for kind in catalog.device_table.kinds(driver)]
    whose = f"driver {', '.join(drivers)}" if drivers else f"DeviceClass {definition.device_class}"
    if not kinds:
        said = f"{about} counts {measure}, and no device of {whose} is published."
        yield Finding(Level.WARNING, PART, said)
    elif not any(_has(kind, measure) for kind in kinds):
        said = f"{about} counts {measure}, which no published device of {whose} has."
        names = sorted({name for kind in kinds for name in _names(kind, measure)})
        yield Finding(Level.WARNING, PART, said, f"The devices have: {some_of(names) or 'none'}.")


def _drivers(definition: Definition, catalog: Catalog) -> list[str]:
    """The drivers whose devices an entry may count; for a class without demands those of all."""
    if definition.driver:
        return [definition.driver]
    view = catalog.class_named(ClassName(definition.device_class))
    return sorted((view.drivers if view is not None else ()) or catalog.device_table.drivers())


def _has(facts: DeviceFacts, measure: Measure) -> bool:
    if measure.capacity:
        return facts.capacity(measure.capacity) is not None
    return any(
        found.name == measure.counter and fnmatchcase(found.counter_set, measure.counter_set)
        for found in facts.counters
    )


def _names(facts: DeviceFacts, measure: Measure) -> Iterator[str]:
    """The names that the measure could have, as it writes them."""
    if measure.capacity:
        yield from (f"capacity {found.name}" for found in facts.capacities)
    else:
        yield from (f"counter {found.name} of {found.counter_set}" for found in facts.counters)
