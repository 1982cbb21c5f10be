"""What devices there are to ask for: DeviceClasses, Configurations, Instances and slices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from driver.api import (
    ATTRIBUTE_CONFIGURATION,
    ATTRIBUTE_INSTANCE,
    CONFIGURATION_LABEL,
    DRIVER_NAME,
)
from scheduler_plugin.objects.amounts import NO_KEY, ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.fields import (
    JsonObject,
    a_list,
    an_object,
    number,
    objects,
    own_text,
    readable,
    text,
    texts,
)
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
    """

    name: ClassName
    created: str = ""
    configuration: ResourceKey = NO_KEY
    accounted: bool | None = None
    extended_resource: str = ""
    max_pods: int | None = None
    drivers: tuple[str, ...] = ()


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
    """

    name: str
    configuration: ResourceKey
    nodes: tuple[str, ...] = ()
    capacity: int = 0


@readable
def class_view(obj: JsonObject) -> ClassView:
    """Parse a DeviceClass of resource.k8s.io/v1."""
    metadata = an_object(an_object(obj, "").get("metadata"), "metadata")
    labels = texts(metadata.get("labels"), "metadata.labels")
    annotations = texts(metadata.get("annotations"), "metadata.annotations")
    spec = an_object(obj.get("spec"), "spec")
    return ClassView(
        name=ClassName(own_text(metadata.get("name"), "metadata.name")),
        created=text(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        configuration=ResourceKey(labels.get(CONFIGURATION_LABEL, "")),
        accounted={"true": True, "false": False}.get(labels.get(ACCOUNTED_LABEL, "")),
        extended_resource=text(spec.get("extendedResourceName"), "spec.extendedResourceName"),
        max_pods=_max_pods(annotations.get(MAX_PODS_ANNOTATION, "")),
        drivers=_drivers(spec),
    )


@readable
def slice_view(obj: JsonObject) -> SliceView:
    """Parse a ResourceSlice of resource.k8s.io/v1."""
    metadata = an_object(an_object(obj, "").get("metadata"), "metadata")
    spec = an_object(obj.get("spec"), "spec")
    driver = text(spec.get("driver"), "spec.driver")
    devices = objects(spec.get("devices"), "spec.devices")
    counts = Counter(_origin(device, where, driver) for where, device in devices)
    return SliceView(
        name=own_text(metadata.get("name"), "metadata.name"),
        driver=driver,
        node=text(spec.get("nodeName"), "spec.nodeName"),
        counts=tuple(sorted(counts.items())),
    )


@readable
def instance_view(obj: JsonObject) -> InstanceView:
    """Parse an Instance."""
    metadata = an_object(an_object(obj, "").get("metadata"), "metadata")
    spec = an_object(obj.get("spec"), "spec")
    return InstanceView(
        own_text(metadata.get("name"), "metadata.name"),
        ResourceKey(text(spec.get("configurationName"), "spec.configurationName")),
        tuple(
            text(node, f"spec.nodes[{index}]")
            for index, node in enumerate(a_list(spec.get("nodes"), "spec.nodes"))
        ),
        max(0, number(spec.get("capacity"), "spec.capacity", default=0)),
    )


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
    for where, selector in objects(
        a_list(spec.get("selectors"), "spec.selectors"), "spec.selectors"
    ):
        cel = an_object(selector.get("cel"), f"{where}.cel")
        expression = text(cel.get("expression"), f"{where}.cel.expression")
        first, _, rest = expression.partition("&&")
        subject, equals, driver = first.partition("==")
        driver = driver.strip()
        plain = "||" not in rest and "?" not in rest and driver[:1] == driver[-1:] == '"'
        if equals and subject.strip() == "device.driver" and plain and driver.count('"') == 2:
            found.append(driver[1:-1])
    return tuple(found)


def _origin(device: JsonObject, path: str, driver: str) -> tuple[str, str]:
    """The Configuration and the Instance that a device of ours is of."""
    if driver != DRIVER_NAME:
        return "", ""
    attributes = an_object(device.get("attributes"), f"{path}.attributes")
    found = []
    for name in (ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE):
        where = f"{path}.attributes[{name}]"
        attribute = an_object(attributes.get(name), where)
        found.append(text(attribute.get("string"), f"{where}.string"))
    return found[0], found[1]
