"""The fields of a Queue that are read, as the API writes them, see `kube.shapes`.

`models` has the definition of a Queue; importing it costs pydantic.
"""

# No annotations from __future__: msgspec would evaluate each text in every process.

from typing import Any

import msgspec

from kube.shapes.metadata import Condition, NamedMetadata
from kube.shapes.selection import LabelSelector


class QueueMetadata(NamedMetadata, frozen=True, kw_only=True, rename="camel"):
    """`metadata` of a Queue."""

    generation: int | None = None
    finalizers: list[str] | None = None


class SharingFields(msgspec.Struct, frozen=True, rename="camel"):
    """`spec.claimSharing`; absent fields are inherited."""

    policy: str | None = None
    queues: list[str] | None = None
    on_owner_exit: str | None = None
    owner_exit_grace_period: str | None = None
    evict_foreign: str | None = None
    label_at_create: str | None = None


class CounterFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`counter` of a measure."""

    set: str
    name: str


class MeasureFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`measure` of an entry."""

    capacity: str | None = None
    counter: CounterFields | None = None


class ShareFields(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """An entry of `spec.resources`; with a field of a later version it counts something else."""

    name: str | None = None
    device_class: str | None = None
    driver: str | None = None
    selector: str | None = None
    measure: MeasureFields | None = None
    quota: int | str | None = None
    limit: int | str | None = None
    over_quota_weight: int | None = None


class QueueSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`spec` of a Queue."""

    parent: str | None = None
    namespace_selector: LabelSelector | None = None
    priority: int | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    claim_sharing: SharingFields | None = None
    resources: list[dict[str, Any]] | None = None


class QueueStatus(msgspec.Struct, frozen=True):
    """`status` of a Queue, which the plugin writes."""

    conditions: list[Condition] | None = None


class QueueFields(msgspec.Struct, frozen=True):
    """A Queue."""

    metadata: QueueMetadata
    spec: QueueSpec | None = None
    status: QueueStatus | None = None

    @property
    def conditions(self) -> list[Condition]:
        return (self.status.conditions if self.status is not None else None) or []


NO_QUEUE_SPEC, NO_SHARING = QueueSpec(), SharingFields()
NO_COUNTER = CounterFields("", "")
