"""Shapes of a ResourceClaim and of a ResourceClaimTemplate."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from collections.abc import Sequence
from typing import Any

import msgspec

from kube.shapes.classes import Selector
from kube.shapes.metadata import Metadata
from kube.shapes.reading import Set
from kube.shapes.selection import NodeSelector, Toleration

WORKLOAD_GROUP = "scheduling.k8s.io"
"""The API group of Kubernetes' own PodGroups."""


class Capacity(msgspec.Struct, frozen=True):
    """`capacity` of a request: the amounts for each device."""

    requests: dict[str, Any] | None = None


class ExactRequest(msgspec.Struct, frozen=True, rename="camel"):
    """`exactly` of a request, or an entry of its `firstAvailable`."""

    name: str | None = None
    device_class_name: str | None = None
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    capacity: Capacity | None = None
    selectors: list[Selector] | None = None
    tolerations: list[Toleration] | None = None


class ClaimRequest(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `spec.devices.requests`."""

    name: str | None = None
    exactly: ExactRequest | None = None
    first_available: list[ExactRequest] | None = None


class DeviceConstraint(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `spec.devices.constraints`."""

    requests: list[str] | None = None
    match_attribute: str | None = None


class Devices(msgspec.Struct, frozen=True):
    """Of `spec.devices`."""

    requests: list[ClaimRequest] | None = None
    constraints: list[DeviceConstraint] | None = None


class Spec(msgspec.Struct, frozen=True):
    """Of `spec`."""

    devices: Devices | None = None


class AllocationResult(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `status.allocation.devices.results`."""

    request: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Any] | None = None
    admin_access: bool | None = None


class Results(msgspec.Struct, frozen=True):
    """Of `status.allocation.devices`."""

    results: list[AllocationResult] | None = None


class Allocation(msgspec.Struct, frozen=True, rename="camel"):
    """Of `status.allocation`."""

    devices: Results | None = None
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `status.reservedFor`."""

    uid: Set
    name: str | None = None
    resource: str | None = None
    api_group: str | None = None

    @property
    def is_pod(self) -> bool:
        return self.resource == "pods" and not self.api_group

    @property
    def is_pod_group(self) -> bool:
        """Whether it stands for the pods of a PodGroup (feature `DRAWorkloadResourceClaims`)."""
        return self.resource == "podgroups" and self.api_group == WORKLOAD_GROUP


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Of `status`."""

    allocation: Allocation | None = None
    reserved_for: list[ConsumerReference] | None = None


class Claim(msgspec.Struct, frozen=True):
    """A ResourceClaim."""

    metadata: Metadata | None = None
    spec: Spec | None = None
    status: Status | None = None

    @property
    def is_allocated(self) -> bool:
        return self.status is not None and self.status.allocation is not None

    @property
    def results(self) -> Sequence[AllocationResult]:
        """The allocated devices of all drivers."""
        allocation = self.status.allocation if self.status is not None else None
        devices = allocation.devices if allocation is not None else None
        return (devices.results if devices is not None else None) or ()

    @property
    def consumers(self) -> Sequence[ConsumerReference]:
        """The consumers that the claim is reserved for."""
        return (self.status.reserved_for if self.status is not None else None) or ()


class TemplateSpec(msgspec.Struct, frozen=True):
    """`spec` of a template."""

    metadata: Metadata | None = None
    spec: Spec | None = None


class Template(msgspec.Struct, frozen=True):
    """A ResourceClaimTemplate."""

    metadata: Metadata | None = None
    spec: TemplateSpec | None = None


NO_SPEC, NO_STATUS, NO_EXACT = Spec(), Status(), ExactRequest()
