"""Instances as objects of the API server: the fields that drivers write and read.

Instance ──instance_body──► object ──stored_instance──► StoredInstance
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from driver.api import (
    DEVICE_DIGEST,
    NODE_LABEL,
    OFFERED_THROUGH,
    OFFLINE_SINCE,
    SHARED_LABEL_VALUE,
    Configuration,
    ConfigurationName,
    InstanceName,
    NodeName,
)
from driver.derived import Deriving
from driver.device_ids import parse_slot_id
from driver.instances.instances import Instance
from driver.instances.stored.device_usage import Holder, parse_holder
from driver.names import as_text, label_value
from driver.offer_paths import OfferPath
from driver.shapes.instances import NO_INSTANCE_SPEC, InstanceMetadata, InstanceObject, InstanceSpec
from kube.kinds import INSTANCES
from kube.shapes.metadata import OwnerReference
from kube.shapes.reading import JsonObject, own_text, read_as
from kube.shapes.times import read_time


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInstance(Deriving):
    """The fields of an Instance object that decide whether it must be written again.

    Attributes:
        body: The part of the object that drivers write, see `instance_body`.
        slots_used: Whether `deviceUsage` has a value for any slot.
        offline_since: Time of the mark; None without a mark.
        holders: The holders of its slots, on all nodes.
        claimable: Whether it is offered through DRA, see `instances.shared_paths`.
    """

    namespace: str
    name: InstanceName
    uid: str
    resource_version: str
    configuration: ConfigurationName
    body: Mapping[str, Any]
    slots_used: bool
    offline_since: datetime | None = None
    holders: tuple[Holder, ...] = ()
    claimable: bool = False

    @property
    def device(self) -> str | None:
        """The digest of its device; None if the object has none."""
        return device_of(self.body)

    @property
    def is_shared(self) -> bool:
        """Whether a driver of Moorage made it for a device that several nodes may see."""
        label: str | None = self.body["metadata"]["labels"][NODE_LABEL]
        return label == SHARED_LABEL_VALUE

    @property
    def capacity(self) -> int:
        """Number of slots, that is, of concurrent uses."""
        return int(self.body["spec"]["capacity"])

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the device."""
        found: Mapping[str, str] = self.body["spec"]["brokerProperties"]
        return found

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes that see the device."""
        return tuple(self.body["spec"]["nodes"])


@dataclass(frozen=True, slots=True)
class ApplyInstance:
    """Apply this object, server-side.

    Attributes:
        is_new: Whether this node knows no Instance of this name. Another device may have one.
    """

    body: Mapping[str, Any]
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class DeleteInstance:
    """Delete the object at this UID and version."""

    namespace: str
    name: InstanceName
    uid: str
    resource_version: str


InstanceDecision = ApplyInstance | DeleteInstance


def instance_body(
    instance: Instance, configuration: Configuration, node: NodeName
) -> Mapping[str, Any]:
    """The object that `node` applies for its local device.

    It has no `deviceUsage`: slots have a field manager of their own, and an apply without them
    keeps them. An offline device is on no node.
    """
    body = labelled_body(instance, configuration, label_value(node))
    return {**body, "spec": {**body["spec"], "nodes": [node] if instance.online else []}}


def labelled_body(
    instance: Instance, configuration: Configuration, label: str
) -> Mapping[str, Any]:
    """All fields of an Instance that drivers write, without the nodes that see it."""
    return {
        "apiVersion": INSTANCES.api_version,
        "kind": "Instance",
        "metadata": {
            "name": instance.name,
            "namespace": instance.namespace,
            "labels": {NODE_LABEL: label},
            "annotations": _annotations(instance.device),
            "ownerReferences": [_owner(configuration)],
        },
        "spec": {
            "configurationName": instance.configuration,
            "cdiName": instance.cdi_name,
            "capacity": instance.capacity,
            "brokerProperties": {as_text(k): as_text(v) for k, v in instance.properties.items()},
            "shared": instance.shared,
        },
    }


def _annotations(device: str | None) -> Mapping[str, str]:
    return {DEVICE_DIGEST: device} if device else {}


def place_of(body: Mapping[str, Any]) -> tuple[str, InstanceName]:
    """Namespace and name of a body."""
    metadata = body["metadata"]
    return metadata["namespace"], InstanceName(metadata["name"])


def device_of(body: Mapping[str, Any]) -> str | None:
    """The digest of the device of an Instance object; None if the object has none."""
    digest: str | None = (body["metadata"].get("annotations") or {}).get(DEVICE_DIGEST)
    return digest or None


def is_anothers(body: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether the stored object of this name belongs to another device, so that it must stay.

    Args:
        body: The body to write.
        stored: The stored object. Akri made one without our label, of the same device.
    """
    labels = [(of["metadata"].get("labels") or {}).get(NODE_LABEL) for of in (body, stored)]
    devices = [device_of(body), device_of(stored)]
    return (labels[1] is not None and labels[0] != labels[1]) or (
        devices[1] is not None and devices[0] != devices[1]
    )


def says(stored: StoredInstance, body: Mapping[str, Any]) -> bool:
    """Whether the stored object equals the body."""
    return stored.body == body


def is_of_another(stored: StoredInstance, body: Mapping[str, Any]) -> bool:
    """See `is_anothers`."""
    return is_anothers(body, stored.body)


def _owner(configuration: Configuration) -> Mapping[str, Any]:
    return {
        "apiVersion": INSTANCES.api_version,
        "kind": "Configuration",
        "name": configuration.name,
        "uid": configuration.uid,
        "controller": True,
    }


def stored_instance(obj: JsonObject | InstanceObject) -> StoredInstance:
    """Parse an Instance object; absent fields read as the defaults of Akri's definition.

    Raises UnreadableError.
    """
    found = read_as(InstanceObject, obj)
    metadata, spec = found.metadata, found.spec or NO_INSTANCE_SPEC
    name, usage = InstanceName(metadata.name), spec.device_usage or {}
    return StoredInstance(
        namespace=metadata.namespace or "",
        name=name,
        uid=own_text(metadata.uid, "metadata.uid"),
        resource_version=metadata.resource_version or "",
        configuration=configuration_of(spec),
        body=_written_part(metadata, spec),
        slots_used=any(usage.values()),
        offline_since=offline_since(metadata),
        holders=tuple(slot_holders(name, usage)[0].values()),
        claimable=is_claimable(metadata),
    )


def configuration_of(spec: InstanceSpec) -> ConfigurationName:
    """The Configuration of an Instance; raises UnreadableError."""
    return ConfigurationName(own_text(spec.configuration_name, "spec.configurationName"))


def is_claimable(metadata: InstanceMetadata) -> bool:
    """Whether the device of an Instance object is offered through DRA."""
    return (metadata.annotations or {}).get(OFFERED_THROUGH) == OfferPath.DRA


def slot_holders(
    name: InstanceName, usage: Mapping[str, Any]
) -> tuple[dict[int, Holder], tuple[str, ...]]:
    """The holders in `deviceUsage` by slot, and the keys that name no slot of this Instance."""
    holders: dict[int, Holder] = {}
    unknown_keys: list[str] = []
    for key, value in sorted(usage.items()):
        slot = parse_slot_id(key)
        if slot is None or slot[0] != name:
            unknown_keys.append(key)
        elif holder := parse_holder(value):
            holders[slot[1]] = holder
    return holders, tuple(unknown_keys)


def _written_part(metadata: InstanceMetadata, spec: InstanceSpec) -> Mapping[str, Any]:
    return {
        "apiVersion": INSTANCES.api_version,
        "kind": "Instance",
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": {NODE_LABEL: (metadata.labels or {}).get(NODE_LABEL)},
            "annotations": _annotations((metadata.annotations or {}).get(DEVICE_DIGEST)),
            "ownerReferences": [_reference(owner) for owner in metadata.owner_references or ()],
        },
        "spec": {
            "configurationName": spec.configuration_name,
            "cdiName": spec.cdi_name,
            "capacity": spec.capacity,
            "brokerProperties": spec.broker_properties or {},
            "shared": bool(spec.shared),
            "nodes": spec.nodes or [],
        },
    }


def _reference(owner: OwnerReference) -> Mapping[str, Any]:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": owner.controller,
    }


def offline_mark(since: datetime | None) -> dict[str, str | None]:
    """The annotation of the mark; None as the time removes it."""
    return {OFFLINE_SINCE: since.isoformat(timespec="seconds") if since else None}


def offline_since(metadata: InstanceMetadata) -> datetime | None:
    """The time of the mark; an unreadable mark counts as none."""
    return read_time((metadata.annotations or {}).get(OFFLINE_SINCE))
