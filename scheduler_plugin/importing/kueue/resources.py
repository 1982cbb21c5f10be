"""What a resource of a ClusterQueue counts: the devices of classes, or a measure of them.

    deviceClassMappings     name ──► deviceClassNames, and what their sources measure
    extended resources      name ──► the DeviceClass that has it

A request of a mapping's class is charged for the devices of the source's driver and selector. So
the entry is about the class, and its selector names the driver, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from scheduler_plugin.importing.definitions import accepted, of_class
from scheduler_plugin.importing.device_classes import DeviceClasses
from scheduler_plugin.importing.findings import Finding, Unsaid
from scheduler_plugin.importing.foreign import unread
from scheduler_plugin.importing.kueue.kueue_models import (
    Configuration,
    DeviceClassMapping,
    DeviceClassSource,
    DeviceSource,
)
from scheduler_plugin.objects.measures import Definition, Measure

ALL_SETS = "*"
"""Kueue counts a counter of this name in all counter sets of the driver."""

IGNORE_UNDECLARED = "IgnoreUndeclared"
BLOCK_UNDECLARED = "BlockUndeclared"
SEVERAL_SOURCES = "An entry has one measure: the sum of several sources cannot be said."
TOGETHER = (
    "{} are counted together, and an entry counts one class. Make a DeviceClass of all of them, or"
    " write an entry by driver and selector."
)
NO_CLASS = "The mapping names no DeviceClass."

Counting: TypeAlias = Definition | Unsaid
"""What a resource counts, or why no entry counts it."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What resources count.

    Attributes:
        mapped: By the name of a mapping; they win over extended resources.
        blocks_undeclared: Whether a ClusterQueue admits no resource that it does not cover.
    """

    mapped: Mapping[str, Counting]
    classes: DeviceClasses
    blocks_undeclared: bool = True

    def of(self, resource: str) -> Counting:
        """What a resource counts, or why no Queue counts it."""
        if resource in self.mapped:
            return self.mapped[resource]
        found = self.classes.of(resource)
        return found if isinstance(found, Unsaid) else accepted(of_class(found))


def resources_of(
    configurations: Iterable[Configuration], classes: DeviceClasses
) -> tuple[Resources, list[Finding]]:
    """What resources count, and mappings that cannot be said."""
    mapped: dict[str, Counting] = {}
    findings: list[Finding] = []
    strategy = BLOCK_UNDECLARED
    for configuration in configurations:
        resources = configuration.resources
        strategy = (resources and resources.quota_check_strategy) or strategy
        for number, mapping in enumerate((resources and resources.device_class_mappings) or ()):
            path = f"resources.deviceClassMappings[{number}]"
            counting = _counting(mapping, mapped.values())
            mapped[mapping.name] = counting
            if isinstance(counting, Unsaid):
                findings.append(Finding(configuration.about, (path,), counting.sentence))
    return Resources(mapped, classes, strategy != IGNORE_UNDECLARED), findings


def _counting(mapping: DeviceClassMapping, others: Iterable[Counting]) -> Counting:
    """What a mapping counts, beside what those before it do."""
    found = _definition(mapping)
    if isinstance(found, Unsaid):
        return found
    return accepted(found, [each for each in others if isinstance(each, Definition)])


def _definition(mapping: DeviceClassMapping) -> Counting:
    classes, sources = dict.fromkeys(mapping.device_class_names or ()), mapping.sources or ()
    if not classes:
        return Unsaid(NO_CLASS)
    if len(classes) > 1:
        return Unsaid(TOGETHER.format(" and ".join(classes)))
    (device_class,) = classes
    if len(sources) > 1:
        return Unsaid(SEVERAL_SOURCES)
    if sources:
        return _measured(mapping.name, device_class, sources[0])
    return of_class(device_class)


def _measured(resource: str, device_class: str, source: DeviceClassSource) -> Counting:
    match source.counter, source.capacity:
        case DeviceSource() as counter, None:
            found, measure = counter, Measure(counter_set=ALL_SETS, counter=counter.name)
        case None, DeviceSource() as capacity:
            found, measure = capacity, Measure(capacity=capacity.name)
        case _:
            return Unsaid("A source has exactly one of counter and capacity.")
    if any(True for _ in unread(source)):
        return Unsaid("A field of the source is unknown.")
    return Definition(
        name=resource.replace("/", "-"),
        device_class=device_class,
        selector=_selector(found),
        measure=measure,
    )


def _selector(source: DeviceSource) -> str:
    """CEL that is true of the devices of the source's driver that its selector selects."""
    driver = f'device.driver == "{source.driver}"'
    cel = source.device_selector.cel if source.device_selector else None
    return f"{driver} && ({cel.expression})" if cel else driver
