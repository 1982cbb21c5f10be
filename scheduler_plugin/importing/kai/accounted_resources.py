"""What an AccountedResource counts, as the definition of an entry.

An entry counts one thing. So sources that count the same devices are one entry, and the sum of
sources that count different things cannot be said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from scheduler_plugin.importing.definitions import accepted, of_class
from scheduler_plugin.importing.device_classes import DeviceClasses
from scheduler_plugin.importing.findings import Finding, Unsaid
from scheduler_plugin.importing.foreign import unread
from scheduler_plugin.importing.kai.kai_models import (
    AccountedResource,
    AccountedResourceSource,
    DRAAttributeValue,
)
from scheduler_plugin.objects.measures import DEVICES, Definition, Measure

SUM = (
    "The sum of sources that count different things is no amount of one entry. The resource has no"
    " entry."
)
UNREAD: Mapping[str, str] = {
    "podAnnotation": "Pods are charged for devices that they have, and not by their annotations.",
    "match.nodeLabels": "An entry selects devices by their attributes, and not by labels of nodes.",
    "quantity.dra.opaqueConfigField": "The parameters of a driver are not read.",
    "quantity.podAnnotation": "Pods are charged for devices that they have.",
}
"""Why a source with such a field cannot be said."""

UNKNOWN = "The proposal of AccountedResources has no such field."


@dataclass(frozen=True, slots=True)
class Counted:
    """What of AccountedResources can be said.

    Attributes:
        by_name: What each counts, by its name; those that have no entry are missing.
        findings: What cannot be said.
    """

    by_name: Mapping[str, Definition]
    findings: tuple[Finding, ...]


def counted(
    resources: Iterable[AccountedResource], classes: DeviceClasses, used: Iterable[Definition]
) -> Counted:
    """The definitions of AccountedResources beside those that are used, whose names are taken."""
    by_name: dict[str, Definition] = {}
    findings: list[Finding] = []
    taken = list(used)
    for each in resources:
        definition, those = _definition(each, classes)
        findings += those
        if definition is None:
            continue
        found = accepted(definition, taken)
        if isinstance(found, Unsaid):
            findings.append(Finding(each.about, ("metadata.name",), found.sentence))
        else:
            by_name[each.name] = found
            taken.append(found)
    return Counted(by_name, tuple(findings))


def _definition(
    resource: AccountedResource, classes: DeviceClasses
) -> tuple[Definition | None, list[Finding]]:
    findings: list[Finding] = []
    found: dict[Definition, list[str]] = {}
    sources = (resource.spec.sources if resource.spec else None) or ()
    for number, source in enumerate(sources):
        path = f"spec.sources[{number}]"
        those = list(_of_source(source, path, resource.name, classes))
        findings += (Finding(resource.about, (at,), said.sentence) for at, said in _unsaid(those))
        for definition in (each for _, each in those if isinstance(each, Definition)):
            found.setdefault(definition, []).append(path)
    if len(found) > 1:
        paths = tuple(path for those in found.values() for path in those)
        return None, [*findings, Finding(resource.about, paths, SUM)]
    return next(iter(found), None), findings


def _unsaid(found: Iterable[tuple[str, Definition | Unsaid]]) -> Iterator[tuple[str, Unsaid]]:
    return ((path, each) for path, each in found if isinstance(each, Unsaid))


def _of_source(
    source: AccountedResourceSource, path: str, name: str, classes: DeviceClasses
) -> Iterator[tuple[str, Definition | Unsaid]]:
    """What a source counts, or each of its fields that cannot be said."""
    problems = [(f"{path}.{at}", Unsaid(UNREAD.get(at, UNKNOWN))) for at, _ in unread(source)]
    problems += _problems_of_match(source, path)
    device_class = _class_of(source, path, classes)
    if isinstance(device_class, str) and not problems:
        selector, measure = _selector(source), _measure(source)
        plain = replace(of_class(device_class), name=name)
        yield path, replace(plain, selector=selector, measure=measure)
    elif isinstance(device_class, tuple) and not problems:
        yield device_class
    yield from problems


def _class_of(
    source: AccountedResourceSource, path: str, classes: DeviceClasses
) -> str | tuple[str, Unsaid]:
    if source.dra and source.resource_name is None:
        return source.dra.device_class_name
    if source.resource_name is not None and source.dra is None:
        found = classes.of(source.resource_name)
        return (f"{path}.resourceName", found) if isinstance(found, Unsaid) else found
    return path, Unsaid("A source has exactly one of resourceName, dra and podAnnotation.")


def _problems_of_match(source: AccountedResourceSource, path: str) -> Iterator[tuple[str, Unsaid]]:
    for name, value in _attributes(source).items():
        at = f"{path}.match.dra.deviceAttributes[{name}]"
        if value.version is not None:
            yield at, Unsaid("Moorage's selectors do not compare versions.")
        elif len(_literals(value)) != 1:
            yield at, Unsaid("An attribute has exactly one of string, int, bool and version.")


def _attributes(source: AccountedResourceSource) -> Mapping[str, DRAAttributeValue]:
    dra = source.match.dra if source.match else None
    return (dra.device_attributes if dra else None) or {}


def _literals(value: DRAAttributeValue) -> list[str]:
    """The values that are given, as CEL writes them, which in these types is as JSON does."""
    given = (value.string, value.int_, value.bool_)
    return [json.dumps(each, ensure_ascii=False) for each in given if each is not None]


def _selector(source: AccountedResourceSource) -> str:
    """CEL that is true of devices with all attributes; a device without one does not match."""
    return " && ".join(
        _condition(name, _literals(value)[0]) for name, value in _attributes(source).items()
    )


def _condition(attribute: str, literal: str) -> str:
    """A name without a domain has that of the driver."""
    domain, _, name = attribute.rpartition("/")
    at = json.dumps(domain) if domain else "device.driver"
    key = json.dumps(name)
    return (
        f"{at} in device.attributes && {key} in device.attributes[{at}]"
        f" && device.attributes[{at}][{key}] == {literal}"
    )


def _measure(source: AccountedResourceSource) -> Measure:
    dra = source.quantity.dra if source.quantity else None
    if dra and dra.selected_capacity:
        return Measure(capacity=dra.selected_capacity.capacity_name)
    return DEVICES
