"""Whether the entries of Queues are counted: a device is charged as its Configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver.api import DRIVER_NAME
from kube.shapes.reading import JsonObject
from scheduler_plugin.checking.entries import readable_queues
from scheduler_plugin.checking.setups import Finding, Level, Setup, Unread, named, unread
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.devices.devices import ClassView, class_view, slice_view
from scheduler_plugin.objects.devices.driver_guards import unguarded, unguarded_driver
from scheduler_plugin.objects.names import QUEUE_LABEL, Queue

PART = "classes"
_WORD = re.compile(r"""['"]([^'"]+)['"]""")


@dataclass(frozen=True, slots=True)
class Listed:
    """A DeviceClass that a Queue lists.

    Attributes:
        held: The devices of its claims: the driver, and for our driver the Configuration.
    """

    queue: str
    view: ClassView
    held: frozenset[tuple[str, str]] = frozenset()


def judge_classes(setup: Setup) -> Iterator[Finding]:
    """One finding for each entry of a Queue that counts nothing, or something else."""
    found = listed_classes(setup)
    if isinstance(found, Unread):
        yield unread(PART, found)
        return
    flaws = [flaw for each in found if (flaw := _counted_otherwise(each))]
    yield from flaws
    if found and not flaws:
        yield Finding(Level.OK, PART, "All classes that Queues list are counted.")


def judge_drivers(setup: Setup) -> Iterator[Finding]:
    """One finding for each class in Queues whose driver the policy moorage-allocations omits.

    Without that policy there is no finding: `guards` says what that means.
    """
    found, guarded = listed_classes(setup), _accounted_drivers(setup)
    if isinstance(found, Unread) or not guarded:
        return
    sentences = {
        unguarded(each.view, (driver for driver, _ in each.held), guarded): each.queue
        for each in found
    }
    sentences |= {said: queue for queue, said in _by_driver(setup, guarded)}
    for said, queue in sentences.items():
        if said:
            yield Finding(Level.WARNING, "drivers", f"Queue {queue}: {said}", _GUARD)
    if sentences and not any(sentences):
        said = f"Other schedulers cannot allocate devices of {', '.join(guarded)}."
        yield Finding(Level.OK, "drivers", said)


def _by_driver(setup: Setup, guarded: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The queue of each entry by driver, and why its driver is not guarded; "" if it is."""
    for queue in readable_queues(setup.queues):
        for key, share in queue.shares.items():
            if share.definition is not None and share.definition.driver:
                yield queue.name, unguarded_driver(str(key), share.definition.driver, guarded)


_GUARD = (
    "Run helm upgrade with that value, or set the variable accountedDrivers of the policy"
    " moorage-allocations and --accounted-drivers of plugin and webhook. Then all pods that use the"
    " driver's devices need Moorage's scheduler."
)


def _accounted_drivers(setup: Setup) -> tuple[str, ...]:
    """The drivers that the policy names, as the chart and the manifests write it."""
    policies = setup.policies if isinstance(setup.policies, tuple) else ()
    body = named(policies, "moorage-allocations") or {}
    variables = body.get("spec", {}).get("variables") or ()
    expression = next((v["expression"] for v in variables if v["name"] == "accountedDrivers"), "")
    return tuple(_WORD.findall(expression))


def listed_classes(setup: Setup) -> list[Listed] | Unread:
    """The existing DeviceClasses that Queues list, with the devices of their claims."""
    kinds = (setup.queues, setup.classes, setup.slices, setup.claims)
    match kinds:
        case (tuple(), tuple(classes), tuple(slices), tuple(claims)):
            catalog = Catalog(lambda _: True)
            for body in classes:
                catalog.put_class(class_view(body))
            for body in slices:
                catalog.put_slice(slice_view(body))
            return list(_listed(readable_queues(setup.queues), catalog, _held(claims, catalog)))
        case _:
            return next(kind for kind in kinds if isinstance(kind, Unread))


def _listed(
    queues: Iterable[Queue],
    catalog: Catalog,
    held: Mapping[ClassName, set[tuple[str, str]]],
) -> Iterator[Listed]:
    for queue in queues:
        for key in queue.shares:
            name = ClassName(queue.class_of(key))
            view = catalog.class_named(name)
            if view is not None and view.accounted is not False:
                yield Listed(queue.name, view, frozenset(held.get(name, ())))


def _held(
    claims: Sequence[JsonObject], catalog: Catalog
) -> Mapping[ClassName, set[tuple[str, str]]]:
    found: dict[ClassName, set[tuple[str, str]]] = {}
    for body in claims:
        view = claim_view(body, queue_label=QUEUE_LABEL)
        classes = {a.name: a.device_class for r in view.requests for a in r.alternatives}
        for result in view.results or ():
            name = classes.get(result.request)
            if name is not None and not result.admin_access:
                configuration = catalog.configuration_of(result.device_id) or ""
                found.setdefault(name, set()).add((result.driver, configuration))
    return found


def _counted_otherwise(listed: Listed) -> Finding | None:
    view = listed.view
    known = {configuration for _, configuration in listed.held} | {view.selects, view.configuration}
    names = sorted(known - {"", view.name})
    has_ours = any(driver == DRIVER_NAME for driver, _ in listed.held)
    if not (view.is_ours or has_ours) or (not names and view.configuration):
        return None
    which = f"here {', '.join(names)}" if names else "which the selectors do not say"
    said = (
        f"Queue {listed.queue} lists DeviceClass {view.name}, which selects devices of Moorage:"
        f" each device is counted as its Configuration, {which}, and not as {view.name}."
    )
    mend = f"List {' and '.join(names) or 'the Configurations'} in Queue {listed.queue} instead."
    return Finding(Level.WARNING, PART, said, mend)
