"""KAI's kinds, as far as they are translated.

Queue: `pkg/apis/scheduling/v2/{queue_types,resources}.go` of kai-scheduler/KAI-Scheduler at
d5bc503a (2026-08-07). AccountedResource, and `spec.accountedResources` of a Queue: the proposal
`docs/developer/designs/accounted-resource-api.md` of the same commit, which is not built there.
"""

from __future__ import annotations

from scheduler_plugin.importing.foreign import (
    Foreign,
    ForeignName,
    ForeignObject,
    QuantityOrUnlimited,
)

GROUP = "scheduling.run.ai"


class QueueResource(Foreign):
    """Amounts of one resource. A field that is absent is 0, which for a limit means nothing."""

    quota: QuantityOrUnlimited | None = None
    limit: QuantityOrUnlimited | None = None
    over_quota_weight: QuantityOrUnlimited | None = None


class QueueResources(Foreign):
    """Whole GPUs, thousandths of CPUs, and megabytes."""

    gpu: QueueResource | None = None
    cpu: QueueResource | None = None
    memory: QueueResource | None = None


class QueueAccountedResource(Foreign):
    """A limit on an AccountedResource."""

    resource_ref: str
    limit: QuantityOrUnlimited


class KaiQueueSpec(Foreign):
    """The spec of a Queue."""

    parent_queue: ForeignName | None = None
    priority: int | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    resources: QueueResources | None = None
    accounted_resources: list[QueueAccountedResource] | None = None


class KaiQueue(ForeignObject):
    """A Queue of `scheduling.run.ai`."""

    spec: KaiQueueSpec | None = None


class DRASource(Foreign):
    """Devices by the class that they are requested by."""

    device_class_name: str


class DRAAttributeValue(Foreign):
    """The value that an attribute of a device must have; one of the fields is set."""

    string: str | None = None
    int_: int | None = None
    bool_: bool | None = None
    version: str | None = None


class DRAMatch(Foreign):
    """Attributes that a device must have."""

    device_attributes: dict[str, DRAAttributeValue] | None = None


class AccountedResourceMatch(Foreign):
    """Where a source counts."""

    dra: DRAMatch | None = None


class SelectedCapacity(Foreign):
    """A capacity of the device that was selected."""

    capacity_name: str


class DRAQuantity(Foreign):
    """How much a device costs."""

    selected_capacity: SelectedCapacity | None = None


class AccountedResourceQuantity(Foreign):
    """How much a request costs."""

    dra: DRAQuantity | None = None


class AccountedResourceSource(Foreign):
    """One kind of request that is counted."""

    resource_name: str | None = None
    dra: DRASource | None = None
    match: AccountedResourceMatch | None = None
    quantity: AccountedResourceQuantity | None = None


class AccountedResourceDefaults(Foreign):
    """What Queues have that do not list the resource."""

    limit: QuantityOrUnlimited | None = None


class AccountedResourceSpec(Foreign):
    """What is counted; amounts of several sources are added up."""

    defaults: AccountedResourceDefaults | None = None
    sources: list[AccountedResourceSource] | None = None


class AccountedResource(ForeignObject):
    """An AccountedResource of `scheduling.run.ai`."""

    spec: AccountedResourceSpec | None = None
