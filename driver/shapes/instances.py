"""The fields of an Instance that are read, as the API writes them."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from typing import Any

import msgspec

from kube.shapes.metadata import NamedMetadata, OwnerReference


class InstanceMetadata(NamedMetadata, frozen=True, kw_only=True, rename="camel"):
    """`metadata` of an Instance."""

    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class InstanceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`spec` of an Instance; `instances.stored.device_usage` reads its slots."""

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
