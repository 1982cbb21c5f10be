"""Views of DeviceClasses, Instances and slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sys import intern

from driver.api import (
    ATTRIBUTE_CONFIGURATION,
    ATTRIBUTE_INSTANCE,
    CONFIGURATION_LABEL,
    DRIVER_NAME,
    OFFLINE_SINCE,
)
from driver.shapes.instance_taints import TaintRuleIndex, instance_pools
from driver.shapes.instances import NO_INSTANCE_SPEC, InstanceObject
from kube.shapes.classes import NO_SPEC as NO_CLASS_SPEC
from kube.shapes.classes import DeviceClass
from kube.shapes.reading import JsonObject, read_as
from kube.shapes.slices import NO_POOL, NO_SPEC, Device, Slice, Spec
from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.objects.amounts import NO_KEY, ResourceKey
from scheduler_plugin.objects.claim_objects import expressions
from scheduler_plugin.objects.claims import ClassName, DeviceId
from scheduler_plugin.objects.devices.class_selectors import (
    demanded_configuration,
    demanded_drivers,
    selects_driver_only,
)
from scheduler_plugin.objects.devices.device_facts import ListedDevice, device_facts
from scheduler_plugin.objects.devices.device_looks import look_of
from scheduler_plugin.objects.names import ACCOUNTED_LABEL, MAX_PODS_ANNOTATION


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassView:
    """A DeviceClass.

    Attributes:
        created: Its creation time as the API writes it; the text sorts in order of time.
        configuration: The Configuration of a class that Moorage made, as its label says (at most 63
            characters); "" for any other class.
        accounted: The value of its label; None if that is neither `true` nor `false`.
        extended_resource: `spec.extendedResourceName`; "" for none.
        max_pods: How many pods may share one of its claims; None for no limit.
        drivers: The drivers that its selectors demand; () for none.
        selects: The Configuration that its selectors demand; "" for none.
        selectors: CEL expressions that a device must satisfy; None for a selector without CEL.
    """

    name: ClassName
    created: str = ""
    configuration: ResourceKey = NO_KEY
    accounted: bool | None = None
    extended_resource: str = ""
    max_pods: int | None = None
    drivers: tuple[str, ...] = ()
    selects: ResourceKey = NO_KEY
    selectors: tuple[str | None, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether it selects only devices of Moorage's driver."""
        return bool(self.configuration) or self.drivers == (DRIVER_NAME,)

    @property
    def selects_driver_only(self) -> bool:
        """Whether it selects all devices of a driver."""
        return selects_driver_only(self.selectors)

    @property
    def may_be_ours(self) -> bool:
        """Whether it may select devices of Moorage's driver, without evaluating CEL."""
        return self.is_ours or not self.drivers

    @property
    def is_of_several(self) -> bool:
        """Whether it selects devices of Moorage of any Configuration."""
        return self.is_ours and not (self.configuration or self.selects)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceView:
    """A ResourceSlice: how many devices it lists, and where.

    Attributes:
        node: The node of the devices; "" if several nodes can use them.
        pool: The pool of the devices.
        counts: Number of devices by Configuration and Instance; "" for devices of other drivers.
        configurations: The Configuration of each device of Moorage's driver.
        devices: How much each device has, and what CEL sees of it.
    """

    name: str
    driver: str
    node: str = ""
    pool: str = ""
    counts: tuple[tuple[tuple[str, str], int], ...] = ()
    configurations: tuple[tuple[DeviceId, ResourceKey], ...] = ()
    devices: tuple[ListedDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class InstanceView:
    """An `akri.sh/v0` Instance: the Configuration that its devices are charged to.

    Attributes:
        nodes: The nodes that see it.
        capacity: How many concurrent uses it has.
        held: Slots that pods hold through the device plugin, by node; "" for an unknown node.
        offline_since: When the last node ceased to see it, by its annotation; "" for none.
        is_shared: Whether several nodes may see it.
    """

    name: str
    configuration: ResourceKey
    nodes: tuple[str, ...] = ()
    capacity: int = 0
    held: tuple[tuple[str, int], ...] = ()
    offline_since: str = ""
    is_shared: bool = False

    def tainted_by(self, rules: TaintRuleIndex) -> list[tuple[DeviceTaintRule, range]]:
        """The rules that taint slots of it, each with the slots."""
        if not rules:
            return []
        pools = instance_pools(self.configuration, self.nodes, is_shared=self.is_shared)
        return rules.tainting(self.name, pools, self.capacity)


def class_view(obj: JsonObject) -> ClassView:
    """Parse a DeviceClass of resource.k8s.io/v1; raises UnreadableError."""
    found = read_as(DeviceClass, obj)
    metadata, spec = found.metadata, found.spec or NO_CLASS_SPEC
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    selectors = expressions(spec.selectors or ())
    return ClassView(
        name=ClassName(metadata.name),
        created=metadata.creation_timestamp or "",
        configuration=ResourceKey(labels.get(CONFIGURATION_LABEL, "")),
        accounted={"true": True, "false": False}.get(labels.get(ACCOUNTED_LABEL, "")),
        extended_resource=spec.extended_resource_name or "",
        max_pods=_max_pods(annotations.get(MAX_PODS_ANNOTATION, "")),
        drivers=demanded_drivers(selectors),
        selects=ResourceKey(demanded_configuration(selectors)),
        selectors=selectors,
    )


def slice_view(obj: JsonObject | Slice) -> SliceView:
    """Parse a ResourceSlice of resource.k8s.io/v1; raises UnreadableError."""
    found = read_as(Slice, obj)
    spec = found.spec or NO_SPEC
    driver = intern(spec.driver or "")
    pool = intern((spec.pool or NO_POOL).name or "")
    origins = [(each.name or "", origin_of(each, driver)) for each in spec.devices or ()]
    return SliceView(
        name=found.metadata.name,
        driver=driver,
        node=intern(spec.node_name or ""),
        pool=pool,
        counts=tuple(sorted(Counter(origin for _, origin in origins).items())),
        configurations=tuple(
            (DeviceId(driver, pool, intern(name)), ResourceKey(configuration))
            for name, (configuration, _) in origins
            if configuration
        ),
        devices=tuple(_listed(spec, driver, pool)),
    )


def _listed(spec: Spec, driver: str, pool: str) -> Iterator[ListedDevice]:
    for device in spec.devices or ():
        device_id = DeviceId(driver, pool, intern(device.name or ""))
        yield ListedDevice(device_id, device_facts(device, driver), look_of(driver, device))


def instance_view(obj: JsonObject | InstanceObject) -> InstanceView:
    """Parse an Instance; raises UnreadableError."""
    found = read_as(InstanceObject, obj)
    metadata, spec = found.metadata, found.spec or NO_INSTANCE_SPEC
    return InstanceView(
        metadata.name,
        ResourceKey(intern(spec.configuration_name or "")),
        tuple(intern(node) for node in spec.nodes or ()),
        max(0, spec.capacity or 0),
        _held(spec.device_usage or {}),
        (metadata.annotations or {}).get(OFFLINE_SINCE, ""),
        bool(spec.shared),
    )


def _held(usage: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """The number of slots by node. A slot of a Configuration names the node after a colon."""
    holders = (str(value).rpartition(":")[2] for value in usage.values() if value)
    return tuple(sorted(Counter(map(intern, holders)).items()))


def _max_pods(value: str) -> int | None:
    """A number of at least 1; any other value is ignored, since classes are not validated."""
    plausible = value.isascii() and value.isdigit() and len(value) <= 10
    return int(value) or None if plausible else None


def origin_of(device: Device, driver: str) -> tuple[str, str]:
    """The Configuration and the Instance of a device of Moorage; "" for other devices."""
    attributes = device.attributes or {} if driver == DRIVER_NAME else {}
    found = (attributes.get(name) or {} for name in (ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE))
    configuration, instance = (intern(attribute.get("string") or "") for attribute in found)
    return configuration, instance
