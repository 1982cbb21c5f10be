"""The public API of the driver: its names in Kubernetes, and values that other components use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NewType

from driver.pod_requests import effective_requests as effective_requests
from kube.kinds import CONFIGURATIONS

DRIVER_NAME = "moorage.dev"
"""Name of the DRA driver, in slices, classes and sockets; domain of unqualified attributes."""

AKRI_GROUP = CONFIGURATIONS.group

OFFLINE_TAINT = f"{DRIVER_NAME}/offline"
"""Taint of a device that its handler no longer reports and that a claim still holds."""

DEGRADED_TAINT = f"{DRIVER_NAME}/degraded"
"""Taint of a device that its handler reports as degraded."""

NODE_LABEL = f"{DRIVER_NAME}/node"
"""Label of an Instance: the node that has the device, so that other nodes do not watch it."""

SHARED_LABEL_VALUE = ""
"""Value of the label on a shared Instance, which all nodes watch."""

OFFLINE_SINCE = f"{DRIVER_NAME}/offline-since"
"""Annotation of an Instance: since when no node sees the device."""

OFFERED_THROUGH = f"{DRIVER_NAME}/offered-through"
"""Annotation of a shared Instance: `dra` while claims may have the device, and no slot is given."""

DEVICE_DIGEST = f"{DRIVER_NAME}/device"
"""Annotation of an Instance: digest of its device, since two devices may have the same name."""

BROKER_JOB = f"{DRIVER_NAME}/broker-job"
"""Annotation of an Instance: what the broker Job was made from that was made for it."""

BROKER_SELECTOR = f"controller={AKRI_GROUP}"
"""Selects what is made for Configurations: Pods, Jobs, Services and claim templates."""

BROKER_CONFIGURATION = f"{AKRI_GROUP}/configuration"
"""Label of what is made for a Configuration: its name, which may be cut."""

SLOTS_FINALIZER = f"{DRIVER_NAME}/slots"
"""Finalizer of an Instance with held slots: its deletion, and its Configuration's, waits for them.

Writes of slots add and remove it, so that no Instance with free slots keeps it.
"""

CONFIGURATION_LABEL = f"{DRIVER_NAME}/configuration"
"""Label of a DeviceClass that Moorage made: the Configuration whose devices it selects."""

SHARED_POOLS = "shared/"
"""Prefix of the names of pools of shared devices, followed by the Configuration."""

LOCAL_POOLS = "local/"
"""Prefix of the names of pools of one Configuration's local devices, followed by the node, a slash,
and the Configuration."""

MAX_CAPACITY = 1024
"""Most slots of one device. Each slot may become a device of its own (`uniqueDevices: false`)."""

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
"""Effect of a taint: no new claim gets the device; NoExecute also evicts pods that use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueReference:
    """The source of a discovery property's value: an entry of a Secret or a ConfigMap.

    Attributes:
        optional: Whether discovery continues without the value if the entry does not exist.
    """

    kind: Literal["Secret", "ConfigMap"]
    namespace: str
    name: str
    key: str
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A valid `akri.sh/v0` Configuration.

    Attributes:
        discovery_details: The details in the handler's own format, as written.
        capacity: Slots of each device, that is, concurrent uses; at least 1.
        unique_devices: Whether one request never gets two slots of the same device.
        offline_grace_period: How long the Instance of an absent device is kept; None for the
            default, see `configurations.offline_grace`.
        offline_taint_effect: Effect of the taint of an absent device.
        broker_properties: Properties of each device, which override those of the handler.
        attributes: Attributes of each device for selectors, such as `{"floor": {"int": 3}}`, which
            override those of the handler.
        discovery_properties: Values for the handler beside the details, by name: a value, or its
            source. A value may be a password, so it is never shown.
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
    """A problem of an object.

    Attributes:
        path: Path of the field as the Kubernetes API writes it, such as `spec.capacity`.
        message: One sentence without the path.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"
