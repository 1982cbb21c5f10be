"""The fields of Moorage's own kinds that are read, as the API writes them, see `kube.shapes`.

What may be written is said by `models`, which pays for pydantic.
"""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from typing import Any

import msgspec

from kube.shapes.metadata import Condition, NamedMetadata, OwnerReference


class InstanceMetadata(NamedMetadata, frozen=True, kw_only=True, rename="camel"):
    """Of `metadata` of an Instance."""

    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class InstanceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Of `spec` of an Instance; what a slot says is read by `instances.stored.device_usage`."""

    configuration_name: str | None = None
    cdi_name: str | None = None
    capacity: int | None = None
    broker_properties: dict[str, str] | None = None
    shared: bool | None = None
    nodes: list[str] | None = None
    device_usage: dict[str, Any] | None = None


class InstanceObject(msgspec.Struct, frozen=True):
    """An Instance of `akri.sh/v0`."""

    metadata: InstanceMetadata
    spec: InstanceSpec | None = None


NO_INSTANCE_SPEC = InstanceSpec()


class HandlerFields(msgspec.Struct, frozen=True):
    """Of `spec.discoveryHandler` of a Configuration."""

    name: str | None = None


class ConfigurationSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Of `spec` of a Configuration, as far as others than the driver read it."""

    discovery_handler: HandlerFields | None = None
    offline_taint_effect: str | None = None


class NodeReport(msgspec.Struct, frozen=True):
    """An entry of `status.nodes` of a Configuration: what a node says of its handler."""

    name: str
    handler: str | None = None
    since: str | None = None
    registered: bool | None = None
    message: str | None = None


class ConfigurationStatus(msgspec.Struct, frozen=True):
    """Of `status` of a Configuration."""

    conditions: list[Condition] | None = None
    nodes: list[NodeReport] | None = None


class ConfigurationObject(msgspec.Struct, frozen=True):
    """A Configuration of `akri.sh/v0`; the driver reads all of it, see `configurations`."""

    metadata: NamedMetadata
    spec: ConfigurationSpec | None = None
    status: ConfigurationStatus | None = None

    @property
    def handler(self) -> str:
        """The name of its discovery handler; "" for none."""
        found = self.spec.discovery_handler if self.spec is not None else None
        return (found.name if found is not None else None) or ""

    @property
    def reports(self) -> list[NodeReport]:
        return (self.status.nodes if self.status is not None else None) or []

    def condition(self, kind: str) -> Condition | None:
        """The condition of this type; None for none."""
        found = (self.status.conditions if self.status is not None else None) or ()
        return next((each for each in found if each.type == kind), None)
