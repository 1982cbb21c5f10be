"""Configurations: what a user asks to be discovered, checked before anything acts on it.

    object ──parse──► Configuration | problems ──► conditions of its status

A Configuration that has problems is left out and says so in its status; the others go on.
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
"""(handler name, discovery details) → what is wrong with them; () for none."""

ShapeCheck = Callable[[JsonObject], tuple[Problem, ...]]

_HANDLER = "spec.discoveryHandler"
_NOT_RUN = ("brokerSpec", "instanceServiceSpec", "configurationServiceSpec")
"""Parts of Akri's Configuration that are kept and not acted on (see `docs/coming-from-akri.md`)."""

LONGEST_NAME = 253 - len("-a1b2c3")
"""Of a Configuration; an object's name has 253 characters, and an Instance's ends in a hash."""

LARGEST_PROPERTIES = 128 * 1024
"""Bytes of `brokerProperties`. With as many of a device's own, an Instance still fits into etcd."""

NO_GRACE = timedelta()
SHARED_GRACE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one Configuration object.

    Attributes:
        configuration: None where a problem keeps it from being used.
        ignored: Paths of fields that are accepted and not acted on.
        entries: What nodes say in its status, by node.
    """

    name: ConfigurationName
    namespace: str
    uid: str
    generation: int
    created: datetime
    configuration: Configuration | None
    problems: tuple[Problem, ...] = ()
    ignored: tuple[str, ...] = ()
    entries: Mapping[str, JsonObject] = field(default_factory=dict)


def judge(
    body: JsonObject,
    check_details: DetailsCheck,
    *,
    unique_devices_default: bool,
    check_shape: ShapeCheck = lambda _: (),
) -> Verdict:
    """Parse a Configuration as the API server returns it, and name all its problems at once.

    Args:
        body: The object; its metadata is the API server's and therefore complete.
        check_details: Parses `discoveryDetails` as the handler will.
        unique_devices_default: What `spec.uniqueDevices` means where it is absent.
        check_shape: What is not as the definition says; on nodes nobody asks, since the API server
            did.
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
        problems = (Problem("spec", "This is not as the definition of Configurations says."),)
    return Verdict(
        **identity,
        configuration=configuration,
        problems=problems,
        ignored=tuple(f"spec.{name}" for name in _NOT_RUN if spec.get(name)),
        entries={e["name"]: e for e in (body.get("status") or {}).get("nodes") or ()},
    )


def concerns_devices(old: Verdict, new: Verdict) -> bool:
    """Whether they differ in more than what nodes say in the status."""
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
    """How long the Instance of a device that went away is kept for its return.

    Unless the Configuration says otherwise: no time for what one node has, five minutes for what
    several nodes see, since a device on the network comes and goes with it.
    """
    if configuration.offline_grace_period is not None:
        return configuration.offline_grace_period
    return SHARED_GRACE if shared else NO_GRACE


def _problems(name: str, spec: JsonObject, check: DetailsCheck) -> Iterator[Problem]:
    """What is wrong with a Configuration that is as its definition says."""
    if len(name) > LONGEST_NAME:
        sentence = f"{len(name)} characters leave no room for those that an Instance's name adds;"
        yield Problem("metadata.name", f"{sentence} {LONGEST_NAME} may be used.")
    if not 1 <= (capacity := _capacity(spec)) <= MAX_CAPACITY:
        yield Problem("spec.capacity", f"{capacity} is not a number from 1 to {MAX_CAPACITY}.")
    grace = spec.get("offlineGracePeriod")
    if grace and parse_duration(grace) is None:
        yield Problem("spec.offlineGracePeriod", f"{grace!r} is no duration such as 30s or 5m.")
    properties = spec.get("brokerProperties") or {}
    size = sum(len(f"{name}{value}".encode()) for name, value in properties.items())
    if size > LARGEST_PROPERTIES:
        sentence = f"{size} bytes are too many, since each Instance and container gets them all;"
        yield Problem("spec.brokerProperties", f"{sentence} {LARGEST_PROPERTIES} may be used.")
    yield from attribute_problems(spec.get("attributes"))
    handler = spec.get("discoveryHandler") or {}
    if handler.get("name"):
        yield from check(handler["name"], handler.get("discoveryDetails") or "")
    else:
        yield Problem(f"{_HANDLER}.name", "A discovery handler must be named.")
    yield from property_problems(handler.get("discoveryProperties"))


def _capacity(spec: JsonObject) -> int:
    capacity: int | None = spec.get("capacity")
    return 1 if capacity is None else capacity


def holders(verdicts: Iterable[Verdict]) -> dict[ConfigurationName, Verdict]:
    """Who holds each name, since resource names and classes are cluster-wide.

    Of two Configurations of one name in two namespaces the older holds it, whether or not it is
    valid: an edit that breaks it for a minute must not hand its devices to another.
    """
    held: dict[ConfigurationName, Verdict] = {}
    for verdict in sorted(verdicts, key=lambda v: (v.created, v.namespace)):
        held.setdefault(verdict.name, verdict)
    return held
