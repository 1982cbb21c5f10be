"""Shapes of a Pod."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from collections.abc import Iterator
from typing import Any

import msgspec

from kube.shapes.metadata import Condition, StoredMetadata
from kube.shapes.selection import Affinity, AnyObject, Toleration


class Gate(msgspec.Struct, frozen=True):
    """An entry of `spec.schedulingGates`."""

    name: str | None = None


class ClaimEntry(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `spec.resourceClaims`, or of `status.resourceClaimStatuses`."""

    name: str | None = None
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(msgspec.Struct, frozen=True, rename="camel"):
    """Of `spec.schedulingGroup`, since Kubernetes 1.36."""

    pod_group_name: str | None = None


class Volume(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `spec.volumes`."""

    persistent_volume_claim: AnyObject | None = None
    ephemeral: AnyObject | None = None


class SpreadConstraint(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `spec.topologySpreadConstraints`."""

    when_unsatisfiable: str | None = None


class Resources(msgspec.Struct, frozen=True):
    """`resources`: requests and limits, by resource name."""

    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class Port(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `ports`."""

    host_port: int | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container, or an init container."""

    name: str | None = None
    restart_policy: str | None = None
    resources: Resources | None = None
    ports: list[Port] | None = None


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """Of `spec`."""

    node_name: str | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    scheduling_gates: list[Gate] | None = None
    scheduling_group: SchedulingGroup | None = None
    resource_claims: list[ClaimEntry] | None = None
    init_containers: list[Container] | None = None
    containers: list[Container] | None = None
    resources: Resources | None = None
    overhead: dict[str, Any] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    volumes: list[Volume] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None


class Mapping(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of the claim's `requestMappings`."""

    container_name: str | None = None
    resource_name: str | None = None


class ExtendedClaim(msgspec.Struct, frozen=True, rename="camel"):
    """Of `status.extendedResourceClaimStatus`."""

    resource_claim_name: str | None = None
    request_mappings: list[Mapping] | None = None


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Of `status`."""

    phase: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    nominated_node_name: str | None = None
    conditions: list[Condition] | None = None
    resource_claim_statuses: list[ClaimEntry] | None = None
    extended_resource_claim_status: ExtendedClaim | None = None


class Pod(msgspec.Struct, frozen=True):
    """A Pod."""

    metadata: StoredMetadata
    spec: Spec | None = None
    status: Status | None = None

    @property
    def claim_names(self) -> Iterator[str]:
        """Names of the claims in its spec, and of those made for it; a name may repeat."""
        spec, status = self.spec or NO_SPEC, self.status or NO_STATUS
        entries = (*(spec.resource_claims or ()), *(status.resource_claim_statuses or ()))
        extended = status.extended_resource_claim_status or NO_CLAIM
        names = [*(entry.resource_claim_name for entry in entries), extended.resource_claim_name]
        return filter(None, names)

    @property
    def has_ended(self) -> bool:
        return (self.status or NO_STATUS).phase in ENDED


NO_SPEC, NO_STATUS, NO_CLAIM, NO_GROUP = Spec(), Status(), ExtendedClaim(), SchedulingGroup()
NO_RESOURCES = Resources()

ENDED = frozenset({"Succeeded", "Failed"})
"""Phases of a pod whose containers never run again."""
