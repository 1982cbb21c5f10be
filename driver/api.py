"""The driver's door: its names in the outside world, and the shapes that others may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NewType

from driver.pod_requests import effective_requests as effective_requests
from kube.kinds import CONFIGURATIONS

DRIVER_NAME = "moorage.dev"
"""Name of the DRA driver: in slices, classes, sockets, and the domain of unqualified attributes."""

AKRI_GROUP = CONFIGURATIONS.group

OFFLINE_TAINT = f"{DRIVER_NAME}/offline"
"""Taint of a device that its handler no longer reports and that a claim still holds."""

DEGRADED_TAINT = f"{DRIVER_NAME}/degraded"
"""Taint of a device that is there, and that its handler calls degraded."""

NODE_LABEL = f"{DRIVER_NAME}/node"
"""Label of an Instance: the node that has the device, so that no node watches those of others."""

SHARED_LABEL_VALUE = ""
"""Of the label on an Instance whose device several nodes may see: all of them watch it."""

OFFLINE_SINCE = f"{DRIVER_NAME}/offline-since"
"""Annotation of a shared Instance: when the last node ceased to see the device."""

OFFERED_THROUGH = f"{DRIVER_NAME}/offered-through"
"""Annotation of a shared Instance: `dra` while claims may have the device, and no slot is given."""

DEVICE_DIGEST = f"{DRIVER_NAME}/device"
"""Annotation of an Instance: of which device it is, since its name may be that of two."""

SLOTS_FINALIZER = f"{DRIVER_NAME}/slots"
"""On an Instance of which slots are held: whoever deletes it, or its Configuration, waits for them.

It comes and goes with the writes of slots, so that no Instance keeps it whose slots are free.
"""

CONFIGURATION_LABEL = f"{DRIVER_NAME}/configuration"
"""Label of a DeviceClass that Moorage made: the Configuration whose devices it selects."""

SHARED_POOLS = "shared/"
"""Begins the names of pools of devices that several nodes see; the Configuration ends them."""

LOCAL_POOLS = "local/"
"""Begins the names of pools of one Configuration's devices that one node sees; the node's name and
a slash stand between."""

MAX_CAPACITY = 1024
"""Most slots of one device; each may become a device of its own (`uniqueDevices: false`)."""

ATTRIBUTE_CONFIGURATION = "configuration"
ATTRIBUTE_INSTANCE = "instance"
ATTRIBUTE_HEALTH = "health"
CAPACITY_SLOTS = "slots"

ConfigurationName = NewType("ConfigurationName", str)
InstanceName = NewType("InstanceName", str)
DeviceName = NewType("DeviceName", str)
"""Name of a device inside its ResourceSlice pool, a DNS label."""

NodeName = NewType("NodeName", str)
ClaimUid = NewType("ClaimUid", str)

TaintEffect = Literal["NoSchedule", "NoExecute"]
"""Of a taint: no new claim gets the device, or pods that use it are evicted besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueReference:
    """Where the value of a discovery property is kept: an entry of a Secret or a ConfigMap.

    Attributes:
        optional: Whether discovery goes on without the value where there is no such entry.
    """

    kind: Literal["Secret", "ConfigMap"]
    namespace: str
    name: str
    key: str
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What an `akri.sh/v0` Configuration asks for, already valid.

    Attributes:
        discovery_details: The handler's own YAML, as written.
        capacity: Slots of each device, that is, uses at one time; at least 1.
        unique_devices: Whether one request is never given two slots of one device.
        offline_grace_period: How long the Instance of a device that went away is kept; None for
            the default, see `configurations.offline_grace`.
        offline_taint_effect: Of the taint that a device bears which went away.
        broker_properties: Laid over the properties of each device; they win.
        attributes: What claims may select each device by, `{"floor": {"int": 3}}`; they win.
        discovery_properties: What the handler is given beside the details, by name: a value, or
            where it is kept. A value may be a password, so it is never shown.
    """

    name: ConfigurationName
    namespace: str
    uid: str
    generation: int
    created: datetime
    handler: str
    discovery_details: str
    capacity: int
    unique_devices: bool
    offline_grace_period: timedelta | None
    broker_properties: Mapping[str, str]
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    offline_taint_effect: TaintEffect = "NoSchedule"
    discovery_properties: Mapping[str, str | ValueReference] = field(
        default_factory=dict, repr=False
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an object: where, and what.

    Attributes:
        path: The field's path as the Kubernetes API writes it, `spec.capacity`.
        message: One sentence without the path.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"
