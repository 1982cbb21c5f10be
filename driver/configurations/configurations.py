"""Configurations: the devices that a user wants discovered, validated before anything acts on them.

    object ──judge──► Verdict: Configuration | problems ──► conditions of its status

A Configuration with problems is not used, and its status says why. Others are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from driver.api import MAX_CAPACITY, Configuration, ConfigurationName, Problem
from driver.configurations.user_attributes import attribute_problems, user_attributes
from driver.handlers.properties.discovery_properties import discovery_properties, property_problems
from kube.shapes.times import parse_duration, time_of

JsonObject = Mapping[str, Any]

DetailsCheck = Callable[[str, str], tuple[Problem, ...]]
"""(handler name, discovery details) → their problems; () for none."""

ShapeCheck = Callable[[JsonObject], tuple[Problem, ...]]

_HANDLER = "spec.discoveryHandler"
"""Fields of Akri's Configuration that Moorage ignores, see `docs/coming-from-akri.md`."""

LONGEST_NAME = 253 - len("-a1b2c3")
"""Most characters of a Configuration's name. An object's name has 253 characters, and that of an
Instance ends in a hash."""

LARGEST_PROPERTIES = 128 * 1024
"""Most bytes of `brokerProperties`. An Instance with twice as many still fits into etcd."""

NO_GRACE = timedelta()
SHARED_GRACE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of validating one Configuration object.

    Attributes:
        configuration: The valid Configuration; None if there are problems.
        problems: The problems.
        entries: Entries of nodes in its status, by node.
    """

    name: ConfigurationName
    namespace: str
    uid: str
    generation: int
    created: datetime
    configuration: Configuration | None
    problems: tuple[Problem, ...] = ()
    entries: Mapping[str, JsonObject] = field(default_factory=dict)


def judge(
    body: JsonObject,
    check_details: DetailsCheck,
    *,
    unique_devices_default: bool,
    check_shape: ShapeCheck = lambda _: (),
) -> Verdict:
    """Parse a Configuration as the API server returns it, and find all its problems.

    Args:
        body: The object, with complete metadata.
        check_details: Parses `discoveryDetails` as the handler does.
        unique_devices_default: The value of `spec.uniqueDevices` if it is absent.
        check_shape: Validates the object by its definition. Nodes leave that to the API server.
    """
    metadata, spec = body["metadata"], body.get("spec") or {}
    identity = {
        "name": ConfigurationName(metadata["name"]),
        "namespace": metadata.get("namespace", ""),
        "uid": metadata["uid"],
        "generation": metadata.get("generation", 0),
        "created": time_of(metadata["creationTimestamp"]),
    }
    configuration = None
    try:
        problems = check_shape(body) or tuple(_problems(metadata["name"], spec, check_details))
        if not problems:
            configuration = _configuration(identity, spec, unique_devices_default)
    except (AttributeError, KeyError, TypeError, ValueError):
        problems = (Problem("spec", "It does not match the definition of Configurations."),)
    return Verdict(
        **identity,
        configuration=configuration,
        problems=problems,
        entries={e["name"]: e for e in (body.get("status") or {}).get("nodes") or ()},
    )


def concerns_devices(old: Verdict, new: Verdict) -> bool:
    """Whether two versions differ in more than the entries of nodes in the status."""
    return replace(old, entries={}) != replace(new, entries={})


def _configuration(
    identity: dict[str, Any], spec: JsonObject, unique_devices_default: bool
) -> Configuration:
    handler = spec["discoveryHandler"]
    unique_devices, grace = spec.get("uniqueDevices"), spec.get("offlineGracePeriod")
    return Configuration(
        **identity,
        handler=handler["name"],
        discovery_details=handler.get("discoveryDetails") or "",
        capacity=_capacity(spec),
        unique_devices=unique_devices_default if unique_devices is None else unique_devices,
        offline_grace_period=parse_duration(grace) if grace else None,
        broker_properties=dict(spec.get("brokerProperties") or {}),
        attributes=user_attributes(spec.get("attributes")),
        offline_taint_effect=spec.get("offlineTaintEffect") or "NoSchedule",
        discovery_properties=discovery_properties(handler.get("discoveryProperties")),
    )


def offline_grace(configuration: Configuration, *, shared: bool) -> timedelta:
    """How long the Instance of an absent device is kept.

    Unless the Configuration sets it, this is no time for devices of one node, and five minutes for
    devices that several nodes see, since a device on the network may be unreachable for a while.
    """
    if configuration.offline_grace_period is not None:
        return configuration.offline_grace_period
    return SHARED_GRACE if shared else NO_GRACE


def _problems(name: str, spec: JsonObject, check: DetailsCheck) -> Iterator[Problem]:
    """The problems of a Configuration that matches its definition."""
    if len(name) > LONGEST_NAME:
        sentence = f"The name has {len(name)} characters; at most {LONGEST_NAME} are allowed,"
        yield Problem("metadata.name", f"{sentence} since the name of an Instance is longer.")
    if not 1 <= (capacity := _capacity(spec)) <= MAX_CAPACITY:
        yield Problem("spec.capacity", f"{capacity} is not a number from 1 to {MAX_CAPACITY}.")
    grace = spec.get("offlineGracePeriod")
    if grace and parse_duration(grace) is None:
        yield Problem("spec.offlineGracePeriod", f"{grace!r} is not a duration such as 30s or 5m.")
    properties = spec.get("brokerProperties") or {}
    size = sum(len(f"{name}{value}".encode()) for name, value in properties.items())
    if size > LARGEST_PROPERTIES:
        sentence = f"They have {size} bytes; at most {LARGEST_PROPERTIES} are allowed, since each"
        yield Problem("spec.brokerProperties", f"{sentence} Instance and container gets them all.")
    yield from attribute_problems(spec.get("attributes"))
    handler = spec.get("discoveryHandler") or {}
    if handler.get("name"):
        yield from check(handler["name"], handler.get("discoveryDetails") or "")
    else:
        yield Problem(f"{_HANDLER}.name", "The name of a discovery handler is required.")
    yield from property_problems(handler.get("discoveryProperties"))


def _capacity(spec: JsonObject) -> int:
    capacity: int | None = spec.get("capacity")
    return 1 if capacity is None else capacity


def holders(verdicts: Iterable[Verdict]) -> dict[ConfigurationName, Verdict]:
    """The Configuration that holds each name, since resource names and classes are cluster-wide.

    If two namespaces have a Configuration of the same name, the older one holds the name, valid or
    not: an edit that makes it invalid for a minute must not give its devices to the other one.
    """
    held: dict[ConfigurationName, Verdict] = {}
    for verdict in sorted(verdicts, key=lambda v: (v.created, v.namespace)):
        held.setdefault(verdict.name, verdict)
    return held
