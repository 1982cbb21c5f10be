"""DeviceClasses: one per Configuration, so that a claim can request its devices by name.

A setting adds one per Instance, for claims that request this very device.

A class also has the extended resource `akri.sh/<its name>`, so that a pod written for the device
plugin runs unchanged on a cluster with Dynamic Resource Allocation (KEP-5004).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import (
    AKRI_GROUP,
    ATTRIBUTE_CONFIGURATION,
    ATTRIBUTE_INSTANCE,
    CONFIGURATION_LABEL,
    DRIVER_NAME,
    ConfigurationName,
    InstanceName,
)
from driver.names import attribute_value, label_value
from kube.shapes.metadata import metadata_of

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "moorage"

Body = Mapping[str, Any]

_RESOURCE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClass:
    """A DeviceClass on the API server.

    Attributes:
        ours: Whether Moorage made it. Moorage never changes any other class.
        body: The part that Moorage writes, see `class_body`.
    """

    name: str
    uid: str
    resource_version: str
    ours: bool
    body: Body


@dataclass(frozen=True, slots=True)
class ApplyClass:
    """Apply this DeviceClass, server-side."""

    body: Body


@dataclass(frozen=True, slots=True)
class DeleteClass:
    """Delete the DeviceClass at this UID and version."""

    name: str
    uid: str
    resource_version: str


ClassDecision = ApplyClass | DeleteClass


def class_body(
    configuration: ConfigurationName,
    instance: InstanceName | None = None,
    *,
    extended_resources: bool,
) -> Body:
    """The DeviceClass of a Configuration, or of an Instance of it.

    Args:
        configuration: The Configuration. Its name is the name of the class, which is cluster-wide.
        instance: The Instance of the class, which has its name; None for the Configuration's class.
        extended_resources: Whether the API server keeps `spec.extendedResourceName`.
    """
    name = instance or configuration
    attribute = ATTRIBUTE_INSTANCE if instance else ATTRIBUTE_CONFIGURATION
    selector = (
        f'device.driver == "{DRIVER_NAME}" && '
        f'device.attributes["{DRIVER_NAME}"].{attribute} == "{attribute_value(name)}"'
    )
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": selector}}]}
    if extended_resources and _RESOURCE_NAME.fullmatch(name):
        spec["extendedResourceName"] = f"{AKRI_GROUP}/{name}"
    labels = {MANAGED_BY_LABEL: MANAGED_BY, CONFIGURATION_LABEL: label_value(configuration)}
    return _body(name, labels, spec)


def _body(name: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> Body:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def probe_class() -> Body:
    """A DeviceClass to create with `dryRun: All`, to find out which fields come back."""
    body = class_body(ConfigurationName("probe"), extended_resources=True)
    return {**body, "metadata": {"generateName": "moorage-probe-"}}


def stored_class(body: Mapping[str, Any]) -> StoredClass:
    """Parse a DeviceClass object."""
    metadata = metadata_of(body)
    labels = metadata.labels or {}
    kept = {key: labels[key] for key in (MANAGED_BY_LABEL, CONFIGURATION_LABEL) if key in labels}
    return StoredClass(
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version or "",
        ours=labels.get(MANAGED_BY_LABEL) == MANAGED_BY,
        body=_body(metadata.name, kept, body.get("spec") or {}),
    )


@dataclass(frozen=True, slots=True)
class WantedClasses:
    """The desired DeviceClasses.

    Attributes:
        bodies: The bodies by name.
        kept: Names of classes that stay as they are, if they exist.
    """

    bodies: Mapping[str, Body]
    kept: frozenset[str] = frozenset()

    def retaining(self, names: Iterable[str]) -> WantedClasses:
        """Keep the classes of these names, too, while not all Instances are known."""
        return WantedClasses(self.bodies, self.kept.union(names))

    def with_instances(
        self,
        instances: Iterable[tuple[InstanceName, ConfigurationName]],
        *,
        extended_resources: bool,
    ) -> WantedClasses:
        """Add a class for each of these Instances, unless a Configuration has its name.

        The class of an Instance stays as long as the Instance. It stays as it is while the
        Configuration is invalid.
        """
        bodies, kept = dict(self.bodies), set(self.kept)
        for name, configuration in instances:
            if name in self.bodies or name in self.kept:
                continue
            if configuration in self.bodies:
                bodies[name] = class_body(
                    configuration, name, extended_resources=extended_resources
                )
            elif configuration in self.kept:
                kept.add(name)
        return WantedClasses(bodies, frozenset(kept))


def wanted_classes(
    accepted: Iterable[ConfigurationName],
    named: Collection[ConfigurationName],
    *,
    extended_resources: bool,
) -> WantedClasses:
    """The desired classes: one for each Configuration.

    Args:
        accepted: Configurations whose devices are published.
        named: Names of all Configurations. An invalid one keeps its class.
        extended_resources: See `class_body`.
    """
    bodies: dict[str, Body] = {
        name: class_body(name, extended_resources=extended_resources) for name in sorted(accepted)
    }
    return WantedClasses(bodies, frozenset(named) - bodies.keys())


def plan_classes(wanted: WantedClasses, stored: Iterable[StoredClass]) -> tuple[ClassDecision, ...]:
    """The writes that leave exactly the desired classes among those that Moorage made."""
    by_name = {s.name: s for s in stored}
    applies = (
        ApplyClass(body)
        for name, body in wanted.bodies.items()
        if name not in by_name or (by_name[name].ours and by_name[name].body != body)
    )
    deletes = (
        DeleteClass(name, s.uid, s.resource_version)
        for name, s in sorted(by_name.items())
        if s.ours and name not in wanted.bodies and name not in wanted.kept
    )
    return (*applies, *deletes)


def taken(names: Collection[str], stored: Iterable[StoredClass]) -> tuple[str, ...]:
    """The names among these with a class that Moorage did not make."""
    return tuple(sorted(s.name for s in stored if not s.ours and s.name in names))
