"""Instances: devices under the name of the Configuration that found them.

An Instance is one device of one Configuration. Its name and hash are Akri's, so that objects,
resource names and environment of an Akri cluster stay what they were.

    devices, Configuration ──instances_of──► Instance
    bodies of Instances, stored ones ──plan_instances──► ApplyInstance | DeleteInstance

What is written of devices that several nodes see is decided in `shared_instances`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver.api import (
    AKRI_GROUP,
    AKRI_VERSION,
    NODE_LABEL,
    SHARED_LABEL_VALUE,
    Configuration,
    ConfigurationName,
    InstanceName,
    NodeName,
)
from driver.device_ids import parse_slot_id
from driver.device_usage import Holder, parse_holder
from driver.devices import Device, DeviceSpec, Mount, device_hash
from driver.names import label_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A device as its Configuration offers it.

    Attributes:
        hash: Six hexadecimal digits, Akri's `device_hash`.
        properties: The device's, with the Configuration's `brokerProperties` laid over them.
        capacity: Slots, uses at one time.
        shared: Whether several nodes may see the device.
        online: Whether the handler reports it now; an offline one is kept while it is in use.
        user_attributes: What its Configuration lets claims select it by, see `Configuration`.
        device_attributes: What its handler does beside the properties, the important ones first.
    """

    name: InstanceName
    hash: str
    configuration: ConfigurationName
    namespace: str
    properties: Mapping[str, str]
    mounts: tuple[Mount, ...]
    device_specs: tuple[DeviceSpec, ...]
    capacity: int
    unique_devices: bool
    shared: bool = False
    online: bool = True
    user_attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    device_attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def cdi_name(self) -> str:
        """Akri's `cdiName`: `akri.sh/<configuration>=<hash>`."""
        return f"{AKRI_GROUP}/{self.configuration}={self.hash}"


def instance_of(device: Device, configuration: Configuration, node: NodeName | None) -> Instance:
    """The Instance of a device; `node` is None for a device that several nodes can see."""
    digest = device_hash(device.id, node)
    return Instance(
        name=InstanceName(f"{configuration.name}-{digest}"),
        hash=digest,
        configuration=configuration.name,
        namespace=configuration.namespace,
        properties={**device.properties, **configuration.broker_properties},
        mounts=device.mounts,
        device_specs=device.device_specs,
        capacity=configuration.capacity,
        unique_devices=configuration.unique_devices,
        shared=node is None,
        user_attributes=configuration.attributes,
        device_attributes=device.attributes,
    )


def instances_of(
    devices: Iterable[Device], configuration: Configuration, node: NodeName | None
) -> tuple[Instance, ...]:
    """All Instances of a Configuration, by name.

    Two devices whose hashes are equal (24 bits) would be one Instance; the one whose id sorts
    first keeps the name, so that the answer does not depend on the order of discovery.
    """
    by_name: dict[InstanceName, Instance] = {}
    for device in sorted(devices, key=lambda d: d.id):
        instance = instance_of(device, configuration, node)
        by_name.setdefault(instance.name, instance)
    return tuple(by_name[name] for name in sorted(by_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInstance:
    """What of an Instance object decides whether it must be written again.

    Attributes:
        body: The part of the object that drivers write, see `instance_body`.
        slots_used: Whether `deviceUsage` names a user of any slot.
        holders: Those of its slots that are held, on whichever node.
    """

    namespace: str
    name: InstanceName
    uid: str
    resource_version: str
    configuration: ConfigurationName
    body: Mapping[str, Any]
    slots_used: bool
    holders: tuple[Holder, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether a driver of ours made it for a device that several nodes may see."""
        label: str | None = self.body["metadata"]["labels"][NODE_LABEL]
        return label == SHARED_LABEL_VALUE

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes that see the device."""
        return tuple(self.body["spec"]["nodes"])


@dataclass(frozen=True, slots=True)
class ApplyInstance:
    """Apply this object, server-side."""

    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteInstance:
    """Delete this very object, unless somebody changed it since it was read."""

    namespace: str
    name: InstanceName
    uid: str
    resource_version: str


InstanceDecision = ApplyInstance | DeleteInstance


def instance_body(
    instance: Instance, configuration: Configuration, node: NodeName
) -> Mapping[str, Any]:
    """The object that `node` applies for its local device.

    It names no `deviceUsage`: slots have an owner of their own, and an apply that leaves them out
    leaves them alone. An offline device is on no node.
    """
    body = labelled_body(instance, configuration, label_value(node))
    return {**body, "spec": {**body["spec"], "nodes": [node] if instance.online else []}}


def labelled_body(
    instance: Instance, configuration: Configuration, label: str
) -> Mapping[str, Any]:
    """All that is written of an Instance but for the nodes that see it."""
    return {
        "apiVersion": f"{AKRI_GROUP}/{AKRI_VERSION}",
        "kind": "Instance",
        "metadata": {
            "name": instance.name,
            "namespace": instance.namespace,
            "labels": {NODE_LABEL: label},
            "ownerReferences": [_owner(configuration)],
        },
        "spec": {
            "configurationName": instance.configuration,
            "cdiName": instance.cdi_name,
            "capacity": instance.capacity,
            "brokerProperties": dict(instance.properties),
            "shared": instance.shared,
        },
    }


def _owner(configuration: Configuration) -> Mapping[str, Any]:
    return {
        "apiVersion": f"{AKRI_GROUP}/{AKRI_VERSION}",
        "kind": "Configuration",
        "name": configuration.name,
        "uid": configuration.uid,
        "controller": True,
    }


def stored_instance(body: Mapping[str, Any]) -> StoredInstance:
    """Parse an Instance object; absent fields read as the defaults of Akri's definition."""
    metadata, spec = body["metadata"], body["spec"]
    name, usage = InstanceName(metadata["name"]), spec.get("deviceUsage") or {}
    return StoredInstance(
        namespace=metadata["namespace"],
        name=name,
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        configuration=ConfigurationName(spec["configurationName"]),
        body=_written_part(metadata, spec),
        slots_used=any(usage.values()),
        holders=_holders(name, usage),
    )


def _holders(name: InstanceName, usage: Mapping[str, Any]) -> tuple[Holder, ...]:
    slots = sorted(key for key in usage if (parse_slot_id(key) or ("",))[0] == name)
    return tuple(holder for key in slots if (holder := parse_holder(usage[key])))


def _written_part(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Mapping[str, Any]:
    node = (metadata.get("labels") or {}).get(NODE_LABEL)
    owner_fields = ("apiVersion", "kind", "name", "uid", "controller")
    return {
        "apiVersion": f"{AKRI_GROUP}/{AKRI_VERSION}",
        "kind": "Instance",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {NODE_LABEL: node},
            "ownerReferences": [
                {field: owner.get(field) for field in owner_fields}
                for owner in metadata.get("ownerReferences", ())
            ],
        },
        "spec": {
            "configurationName": spec["configurationName"],
            "cdiName": spec["cdiName"],
            "capacity": spec["capacity"],
            "brokerProperties": spec.get("brokerProperties") or {},
            "shared": spec.get("shared", False),
            "nodes": spec.get("nodes") or [],
        },
    }


def plan_instances(
    wanted: Iterable[Mapping[str, Any]],
    stored: Iterable[StoredInstance],
    *,
    unheard: Collection[ConfigurationName],
    held: Collection[InstanceName],
) -> tuple[InstanceDecision, ...]:
    """What to write so that this node's local Instances are the wanted ones.

    Args:
        wanted: Bodies from `instance_body`.
        stored: This node's local Instances as the API server has them.
        unheard: Configurations whose handler has not answered yet: not heard is not gone, so
            their Instances stay as they are.
        held: Instances that stay although their device is gone: a claim has it allocated, or
            its grace period runs. They are on no node until the device is back.
    """
    remaining = {(s.namespace, s.name): s for s in stored}
    applies: list[InstanceDecision] = []
    for body in wanted:
        existing = remaining.pop((body["metadata"]["namespace"], body["metadata"]["name"]), None)
        if existing is None or existing.body != body:
            applies.append(ApplyInstance(body))
    gone = (s for s in remaining.values() if s.configuration not in unheard)
    return (*applies, *(decision for s in gone for decision in _plan_gone(s, held)))


def _plan_gone(
    stored: StoredInstance, held: Collection[InstanceName]
) -> tuple[InstanceDecision, ...]:
    if stored.name not in held and not stored.slots_used:
        return (DeleteInstance(stored.namespace, stored.name, stored.uid, stored.resource_version),)
    if not stored.body["spec"]["nodes"]:
        return ()
    return (ApplyInstance({**stored.body, "spec": {**stored.body["spec"], "nodes": []}}),)
