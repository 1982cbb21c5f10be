"""What devices there are to ask for: DeviceClasses, Configurations, Instances and slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sys import intern

from driver.api import (
    ATTRIBUTE_CONFIGURATION,
    ATTRIBUTE_INSTANCE,
    CONFIGURATION_LABEL,
    DRIVER_NAME,
)
from scheduler_plugin.objects.amounts import NO_KEY, ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.fields import JsonObject
from scheduler_plugin.objects.names import ACCOUNTED_LABEL, MAX_PODS_ANNOTATION


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassView:
    """A DeviceClass.

    Attributes:
        created: As the API writes it, so that text sorts as time does.
        configuration: The Configuration whose devices it selects, for a class that Moorage made;
            "" for any other. A name of more than 63 characters appears as the label has it.
        accounted: What its label says; None where that is neither `true` nor `false`.
        extended_resource: `spec.extendedResourceName`; "" for none.
        max_pods: How many pods may share one claim of it; None for no such rule.
        drivers: The drivers of which its selectors demand one; () where they name none.
        selectors: Its CEL expressions, all of which a device satisfies; None for what is no CEL.
    """

    name: ClassName
    created: str = ""
    configuration: ResourceKey = NO_KEY
    accounted: bool | None = None
    extended_resource: str = ""
    max_pods: int | None = None
    drivers: tuple[str, ...] = ()
    selectors: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceView:
    """A ResourceSlice: how many devices it lists, and where.

    Attributes:
        node: The node that alone can use them; "" for devices that several nodes can use.
        counts: Devices by Configuration and Instance; "" for other drivers' devices.
    """

    name: str
    driver: str
    node: str = ""
    counts: tuple[tuple[tuple[str, str], int], ...] = ()


@dataclass(frozen=True, slots=True)
class InstanceView:
    """An `akri.sh/v0` Instance: the Configuration that its devices are charged to.

    Attributes:
        nodes: Those that see it.
        capacity: How many uses it has at one time.
        held: Slots that pods hold through the device plugin, by node; "" where a slot does not say.
    """

    name: str
    configuration: ResourceKey
    nodes: tuple[str, ...] = ()
    capacity: int = 0
    held: tuple[tuple[str, int], ...] = ()


def class_view(obj: JsonObject) -> ClassView:
    """Parse a DeviceClass of resource.k8s.io/v1."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return ClassView(
        name=ClassName(metadata["name"]),
        created=metadata.get("creationTimestamp") or "",
        configuration=ResourceKey(labels.get(CONFIGURATION_LABEL, "")),
        accounted={"true": True, "false": False}.get(labels.get(ACCOUNTED_LABEL, "")),
        extended_resource=spec.get("extendedResourceName") or "",
        max_pods=_max_pods(annotations.get(MAX_PODS_ANNOTATION, "")),
        drivers=_drivers(spec),
        selectors=expressions(spec.get("selectors") or ()),
    )


def expressions(selectors: Sequence[JsonObject]) -> tuple[str | None, ...]:
    """The CEL of selectors, of a class or of a request; None for one of another kind."""
    return tuple((selector.get("cel") or {}).get("expression") for selector in selectors)


def slice_view(obj: JsonObject) -> SliceView:
    """Parse a ResourceSlice of resource.k8s.io/v1."""
    spec = obj.get("spec") or {}
    driver = intern(spec.get("driver") or "")
    counts = Counter(_origin(device, driver) for device in spec.get("devices") or ())
    return SliceView(
        name=obj["metadata"]["name"],
        driver=driver,
        node=intern(spec.get("nodeName") or ""),
        counts=tuple(sorted(counts.items())),
    )


def instance_view(obj: JsonObject) -> InstanceView:
    """Parse an Instance."""
    spec = obj.get("spec") or {}
    return InstanceView(
        obj["metadata"]["name"],
        ResourceKey(intern(spec.get("configurationName") or "")),
        tuple(intern(node) for node in spec.get("nodes") or ()),
        max(0, spec.get("capacity") or 0),
        _held(spec.get("deviceUsage") or {}),
    )


def _held(usage: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """How many slots each node holds. A slot of a Configuration names more than the node."""
    holders = (str(value).rpartition(":")[2] for value in usage.values() if value)
    return tuple(sorted(Counter(map(intern, holders)).items()))


def _max_pods(value: str) -> int | None:
    """A number of at least 1; anything else is no rule, since a class is not ours to refuse."""
    plausible = value.isascii() and value.isdigit() and len(value) <= 10
    return int(value) or None if plausible else None


def _drivers(spec: JsonObject) -> tuple[str, ...]:
    """The driver that a selector of the plain form `device.driver == "x" && ...` demands.

    All selectors must hold, so that each may narrow the class down. What is written otherwise
    narrows nothing: the class then counts more devices than it has, never fewer.
    """
    found = []
    for selector in spec.get("selectors") or ():
        expression = (selector.get("cel") or {}).get("expression") or ""
        first, _, rest = expression.partition("&&")
        subject, equals, driver = first.partition("==")
        driver = driver.strip()
        plain = "||" not in rest and "?" not in rest and driver[:1] == driver[-1:] == '"'
        if equals and subject.strip() == "device.driver" and plain and driver.count('"') == 2:
            found.append(driver[1:-1])
    return tuple(found)


def _origin(device: JsonObject, driver: str) -> tuple[str, str]:
    """The Configuration and the Instance that a device of ours is of."""
    attributes = device.get("attributes") or {} if driver == DRIVER_NAME else {}
    found = (attributes.get(name) or {} for name in (ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE))
    configuration, instance = (intern(attribute.get("string") or "") for attribute in found)
    return configuration, instance
