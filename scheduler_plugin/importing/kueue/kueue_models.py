"""Kueue's kinds, as far as they are translated.

`apis/kueue/{v1beta1,v1beta2}` and `apis/config/{v1beta1,v1beta2}` of kubernetes-sigs/kueue at
ff69552e (2026-08-22). What differs between the versions has both names here: `cohort` of v1beta1 is
`cohortName` of v1beta2. `sources` of a mapping exist in v1beta2 alone.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from scheduler_plugin.importing.foreign import (
    Foreign,
    ForeignName,
    ForeignObject,
    ForeignSelector,
    Quantity,
)

GROUP, CONFIGURATION_GROUP = "kueue.x-k8s.io", "config.kueue.x-k8s.io"


class ResourceQuota(Foreign):
    """Quotas of one resource in one flavor."""

    name: str
    nominal_quota: Quantity | None = None
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Foreign):
    """Quotas of one flavor."""

    name: str
    resources: list[ResourceQuota] | None = None


class ResourceGroup(Foreign):
    """Flavors that have the same resources."""

    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotas] | None = None


class FairSharing(Foreign):
    """The part among siblings of what exceeds nominal quotas."""

    weight: Quantity | None = None


class BorrowWithinCohort(Foreign):
    """Preemption by a workload that borrows."""

    policy: str | None = None


class Preemption(Foreign):
    """Which workloads may be preempted."""

    reclaim_within_cohort: str | None = None
    within_cluster_queue: str | None = None
    borrow_within_cohort: BorrowWithinCohort | None = None


class ClusterQueueSpec(Foreign):
    """The spec of a ClusterQueue."""

    resource_groups: list[ResourceGroup] | None = None
    cohort: ForeignName | None = None
    cohort_name: ForeignName | None = None
    namespace_selector: ForeignSelector | None = None
    preemption: Preemption | None = None
    fair_sharing: FairSharing | None = None
    flavor_fungibility: Foreign | None = None


class ClusterQueue(ForeignObject):
    """A ClusterQueue."""

    spec: ClusterQueueSpec | None = None

    @property
    def cohort(self) -> str:
        return (self.spec and (self.spec.cohort_name or self.spec.cohort)) or ""


class CohortSpec(Foreign):
    """The spec of a Cohort."""

    parent_name: ForeignName | None = None
    resource_groups: list[ResourceGroup] | None = None
    fair_sharing: FairSharing | None = None


class Cohort(ForeignObject):
    """A Cohort that has an object."""

    spec: CohortSpec | None = None


class LocalQueueSpec(Foreign):
    """The spec of a LocalQueue."""

    cluster_queue: ForeignName | None = None


class LocalQueue(ForeignObject):
    """A LocalQueue."""

    spec: LocalQueueSpec | None = None


class ResourceFlavorSpec(Foreign):
    """The spec of a ResourceFlavor; it is about nodes, so that none of it is translated."""


class ResourceFlavor(ForeignObject):
    """A ResourceFlavor."""

    spec: ResourceFlavorSpec | None = None


class CELSelector(Foreign):
    """A CEL expression about a device."""

    expression: str


class DeviceSelector(Foreign):
    """Which devices a source counts."""

    cel: CELSelector | None = None


class DeviceSource(Foreign):
    """What a source counts of which devices: the counter or capacity of this name."""

    name: str
    driver: str
    device_selector: DeviceSelector | None = None


class DeviceClassSource(Foreign):
    """One source of a mapping; one of the fields is set."""

    counter: DeviceSource | None = None
    capacity: DeviceSource | None = None


class DeviceClassMapping(Foreign):
    """What a resource of ClusterQueues counts."""

    name: str
    device_class_names: list[str] | None = None
    sources: list[DeviceClassSource] | None = None


class ConfigurationResources(Foreign):
    """Settings about resources."""

    quota_check_strategy: str | None = None
    device_class_mappings: list[DeviceClassMapping] | None = None


class Configuration(ForeignObject):
    """The configuration of Kueue's manager."""

    resources: ConfigurationResources | None = None
    fair_sharing: Annotated[dict[str, Any] | None, Field()] = None
