"""What the controller has made, as it is stored: Pods, Jobs, Services, ResourceClaimTemplates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import msgspec

from driver.api import DRIVER_NAME
from driver.brokers.bodies import REVISION
from driver.brokers.names import CONFIGURATION_LABEL, INSTANCE_LABEL, TARGET_NODE_LABEL
from driver.names import label_value
from kube.kinds import JOBS, PODS
from kube.resources import Resource
from kube.shapes.metadata import Condition, OwnerReference, StoredMetadata
from kube.shapes.reading import JsonObject, read_as

_ADMITTED = f"{DRIVER_NAME}/Admitted"
"""The condition of a pod at Moorage's gate."""

Phase = Literal["", "Pending", "Running", "Ended"]


class _Metadata(StoredMetadata, frozen=True, kw_only=True, rename="camel"):
    owner_references: list[OwnerReference] | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None
    conditions: list[Condition] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata
    status: _Status | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An object of a kind that the controller makes, with the label `controller: akri.sh`.

    Attributes:
        revision: What it was made from; "" if Akri's controller made it.
        configuration: The label's value; "" for none.
        instance: The label's value; "" for none.
        owner: UID of its controller, an Instance or a Configuration; "" for none.
        deleted: Whether it is terminating.
        node: Of a Pod: the label's value, which may be a part of the node's name; else "".
        phase: Of a Pod, and Ended for a Job that is complete or failed; "" for other kinds.
        waits: Why kube-scheduler, or a gate, holds a Pod back; "" if nothing does.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str
    revision: str
    configuration: str
    instance: str
    owner: str
    deleted: bool
    node: str = ""
    phase: Phase = ""
    waits: str = ""

    def is_on(self, node: str) -> bool:
        """Whether it is the Pod for this node."""
        return self.node == label_value(node)


def stored(resource: Resource, body: JsonObject) -> Stored:
    """Parse an object of this kind. Raises UnreadableError."""
    found = read_as(_Object, body)
    metadata, status = found.metadata, found.status or _Status()
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    owners = (each.uid for each in metadata.owner_references or () if each.controller)
    return Stored(
        resource=resource,
        namespace=metadata.namespace or "",
        name=metadata.name,
        uid=metadata.uid,
        revision=annotations.get(REVISION, ""),
        configuration=labels.get(CONFIGURATION_LABEL, ""),
        instance=labels.get(INSTANCE_LABEL, ""),
        owner=next(owners, None) or "",
        deleted=metadata.deletion_timestamp is not None,
        node=labels.get(TARGET_NODE_LABEL, ""),
        phase=_phase(resource, status),
        waits=_waits(metadata, status) if resource == PODS else "",
    )


def _phase(resource: Resource, status: _Status) -> Phase:
    if resource == JOBS:
        ends = {"Complete", "Failed"}
        ended = any(each.type in ends and each.status == "True" for each in status.conditions or ())
        return "Ended" if ended else "Running"
    if resource != PODS:
        return ""
    if status.phase in ("Failed", "Succeeded"):
        return "Ended"
    return "Running" if status.phase == "Running" else "Pending"


def _waits(metadata: StoredMetadata, status: _Status) -> str:
    """The message of the gate, else of kube-scheduler, without names of this pod and its claims.

    So pods that wait for the same thing have the same text.
    """
    of_pods = {each.type: each for each in status.conditions or () if each.status == "False"}
    found = of_pods.get(_ADMITTED) or of_pods.get("PodScheduled")
    if found is None:
        return ""
    own = re.escape(f" {metadata.namespace}/{metadata.name}")
    return re.sub(own + "[-.a-z0-9]*", "", found.message or found.reason or "")
