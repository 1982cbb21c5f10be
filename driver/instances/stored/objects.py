"""Instances as objects of the API server: what drivers write of them, and what they read.

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
    """What of an Instance object decides whether it must be written again.

    Attributes:
        body: The part of the object that drivers write, see `instance_body`.
        slots_used: Whether `deviceUsage` names a user of any slot.
        offline_since: What its mark says; None without one.
        holders: Those of its slots that are held, on whichever node.
        claimable: Whether it says that claims may have the device, see `instances.shared_paths`.
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
        """The digest of its device; None if the object does not say."""
        return device_of(self.body)

    @property
    def is_shared(self) -> bool:
        """Whether a driver of ours made it for a device that several nodes may see."""
        label: str | None = self.body["metadata"]["labels"][NODE_LABEL]
        return label == SHARED_LABEL_VALUE

    @property
    def capacity(self) -> int:
        """Uses that are allowed at one time."""
        return int(self.body["spec"]["capacity"])

    @property
    def properties(self) -> Mapping[str, str]:
        """What the device told of itself."""
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
        is_new: Whether this node knows of none by this name; there may be one that is another's.
    """

    body: Mapping[str, Any]
    is_new: bool = False


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
    """Namespace and name of an object that is written."""
    metadata = body["metadata"]
    return metadata["namespace"], InstanceName(metadata["name"])


def device_of(body: Mapping[str, Any]) -> str | None:
    """The digest of the device that an Instance object is of; None if it does not say."""
    digest: str | None = (body["metadata"].get("annotations") or {}).get(DEVICE_DIGEST)
    return digest or None


def is_anothers(body: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether an object of this name is the Instance of another device, so that it must stay.

    Args:
        body: What would be written.
        stored: What is there. One without our label was made by Akri, of the device that is meant.
    """
    labels = [(of["metadata"].get("labels") or {}).get(NODE_LABEL) for of in (body, stored)]
    devices = [device_of(body), device_of(stored)]
    return (labels[1] is not None and labels[0] != labels[1]) or (
        devices[1] is not None and devices[0] != devices[1]
    )


def says(stored: StoredInstance, body: Mapping[str, Any]) -> bool:
    """Whether the object is as it would be written."""
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
    """Whose Instance it is; raises UnreadableError."""
    return ConfigurationName(own_text(spec.configuration_name, "spec.configurationName"))


def is_claimable(metadata: InstanceMetadata) -> bool:
    """Whether an Instance object says that its device is offered through DRA."""
    return (metadata.annotations or {}).get(OFFERED_THROUGH) == OfferPath.DRA


def slot_holders(
    name: InstanceName, usage: Mapping[str, Any]
) -> tuple[dict[int, Holder], tuple[str, ...]]:
    """What `deviceUsage` says: who holds which slot, and the keys that name no slot of this one."""
    holders: dict[int, Holder] = {}
    strays: list[str] = []
    for key, value in sorted(usage.items()):
        slot = parse_slot_id(key)
        if slot is None or slot[0] != name:
            strays.append(key)
        elif holder := parse_holder(value):
            holders[slot[1]] = holder
    return holders, tuple(strays)


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
    """The annotation; without a time it is taken away."""
    return {OFFLINE_SINCE: since.isoformat(timespec="seconds") if since else None}


def offline_since(metadata: InstanceMetadata) -> datetime | None:
    """What the mark says; one that is no time is read as none."""
    return read_time((metadata.annotations or {}).get(OFFLINE_SINCE))
