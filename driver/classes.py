"""DeviceClasses: one per Configuration, so that a claim can ask for its devices by name.

The class also names `akri.sh/<configuration>` as its extended resource: a pod written for the
device plugin then runs unchanged on a cluster with Dynamic Resource Allocation (KEP-5004).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import (
    AKRI_GROUP,
    ATTRIBUTE_CONFIGURATION,
    CONFIGURATION_LABEL,
    DRIVER_NAME,
    ConfigurationName,
)
from driver.names import attribute_value, label_value

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "moorage"

_RESOURCE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClass:
    """A DeviceClass as the API server has it.

    Attributes:
        ours: Whether Moorage made it; any other class is never touched.
        body: The part that Moorage writes, see `class_body`.
    """

    name: str
    uid: str
    resource_version: str
    ours: bool
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ApplyClass:
    """Apply this DeviceClass, server-side."""

    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteClass:
    """Delete this very DeviceClass, unless somebody changed it since it was read."""

    name: str
    uid: str
    resource_version: str


ClassDecision = ApplyClass | DeleteClass


def class_body(configuration: ConfigurationName, *, extended_resources: bool) -> Mapping[str, Any]:
    """The DeviceClass of a Configuration.

    Args:
        configuration: Its name is the class's name: cluster-wide, as the resource name is.
        extended_resources: Whether the API server keeps `spec.extendedResourceName`.
    """
    value = attribute_value(configuration)
    selector = (
        f'device.driver == "{DRIVER_NAME}" && '
        f'device.attributes["{DRIVER_NAME}"].{ATTRIBUTE_CONFIGURATION} == "{value}"'
    )
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": selector}}]}
    if extended_resources and _RESOURCE_NAME.fullmatch(configuration):
        spec["extendedResourceName"] = f"{AKRI_GROUP}/{configuration}"
    labels = {
        MANAGED_BY_LABEL: MANAGED_BY,
        CONFIGURATION_LABEL: label_value(configuration),
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": configuration, "labels": labels},
        "spec": spec,
    }


def probe_class() -> Mapping[str, Any]:
    """A DeviceClass to create with `dryRun: All`, to see which fields come back."""
    body = class_body(ConfigurationName("probe"), extended_resources=True)
    return {**body, "metadata": {"generateName": "moorage-probe-"}}


def stored_class(body: Mapping[str, Any]) -> StoredClass:
    """Parse a DeviceClass object."""
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    return StoredClass(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        ours=labels.get(MANAGED_BY_LABEL) == MANAGED_BY,
        body={
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {
                "name": metadata["name"],
                "labels": {
                    name: labels[name]
                    for name in (MANAGED_BY_LABEL, CONFIGURATION_LABEL)
                    if name in labels
                },
            },
            "spec": body.get("spec") or {},
        },
    )


def plan_classes(
    accepted: Iterable[ConfigurationName],
    named: Collection[ConfigurationName],
    stored: Iterable[StoredClass],
    *,
    extended_resources: bool,
) -> tuple[ClassDecision, ...]:
    """What to write so that every accepted Configuration has its class.

    Args:
        accepted: Configurations whose devices are published.
        named: All names that some Configuration has; an invalid one keeps the class it has.
        stored: All DeviceClasses of the cluster.
        extended_resources: See `class_body`.
    """
    by_name = {s.name: s for s in stored}
    applies: list[ClassDecision] = []
    for name in sorted(accepted):
        body = class_body(name, extended_resources=extended_resources)
        existing = by_name.get(name)
        if existing is None or (existing.ours and existing.body != body):
            applies.append(ApplyClass(body))
    deletes = [
        DeleteClass(s.name, s.uid, s.resource_version)
        for s in sorted(by_name.values(), key=lambda s: s.name)
        if s.ours and s.name not in named
    ]
    return (*applies, *deletes)


def taken(name: ConfigurationName, stored: Iterable[StoredClass]) -> bool:
    """Whether a class of that name exists that Moorage did not make."""
    return any(s.name == name and not s.ours for s in stored)
