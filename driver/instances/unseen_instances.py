"""Unseen Instances, whose devices no node sees: the shared driver keeps them, then removes them.

    seen ──the last node leaves──► marked with the time ──grace over, not in use──► removed
      ▲                             │
      └──── a node sees it again ───┘

It also cleans up after nodes that no longer exist: their entries in `nodes`, and their local
Instances. A node that is not Ready keeps both, since its driver may still run. And it removes the
finalizer of slots if an administrator cleared the last slot without it.

All state is in the objects, so any process can continue. Each write states the version that it was
decided from, so that a node which sees the device at that moment wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from driver.api import (
    BROKER_JOB,
    NODE_LABEL,
    SHARED_LABEL_VALUE,
    SLOTS_FINALIZER,
    Configuration,
    ConfigurationName,
    InstanceName,
    NodeName,
)
from driver.configurations.configurations import offline_grace
from driver.derived import Deriving
from driver.instances.slots.slots import InstanceSlots, instance_slots
from driver.instances.stored.objects import DeleteInstance, offline_mark, offline_since
from driver.names import attribute_value, label_value
from driver.shapes.instances import NO_INSTANCE_SPEC, InstanceObject
from kube.shapes.reading import JsonObject, read_as
from kube.shapes.times import time_of

NEWBORN = timedelta(seconds=10)
"""A younger Instance is not removed: the node that made it may not have entered itself yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedInstance(Deriving):
    """An Instance as the shared driver observes it: its slots, and the nodes that see it.

    Attributes:
        label: The node that has the device; "" for a device that several nodes may see; None for
            an Instance that no driver of Moorage made.
        offline_since: Time of the mark; None without a mark.
        properties: Properties of a shared Instance; empty for any other.
        broker_job: What the broker Job that was made for it was made from; "" for no Job.
    """

    slots: InstanceSlots
    label: str | None
    created: datetime
    offline_since: datetime | None
    properties: Mapping[str, str] = field(default_factory=dict)
    broker_job: str = ""

    @property
    def is_shared(self) -> bool:
        return self.label == SHARED_LABEL_VALUE


@dataclass(frozen=True, slots=True)
class PatchInstance:
    """A JSON merge patch of an Instance that is refused if the object has changed."""

    namespace: str
    name: InstanceName
    patch: Mapping[str, Any]


def patch_of(
    slots: InstanceSlots, metadata: Mapping[str, Any], **fields: Mapping[str, Any]
) -> PatchInstance:
    """The patch of metadata and other fields, at the version that was read."""
    version = {"uid": slots.uid, "resourceVersion": slots.resource_version}
    return PatchInstance(
        slots.namespace, slots.name, {"metadata": {**version, **metadata}, **fields}
    )


def mark(slots: InstanceSlots, since: datetime | None) -> PatchInstance:
    """The patch of the mark: since when no node sees the device; None removes the mark."""
    return patch_of(slots, {"annotations": offline_mark(since)})


def keep_nodes(slots: InstanceSlots, nodes: Collection[NodeName]) -> PatchInstance:
    """The patch that leaves only these nodes in `nodes`; the others do not exist."""
    return patch_of(slots, {}, spec={"nodes": sorted(nodes)})


def free(slots: InstanceSlots) -> PatchInstance:
    """The patch that removes the finalizer of an Instance without held slots."""
    others = [name for name in slots.finalizers if name != SLOTS_FINALIZER]
    return patch_of(slots, {"finalizers": others})


UnseenDecision = PatchInstance | DeleteInstance


@dataclass(frozen=True, slots=True)
class UnseenPlan:
    """The writes, and when to plan again although nothing changes; None for never."""

    decisions: tuple[UnseenDecision, ...]
    recheck_at: datetime | None


def observed_instance(obj: JsonObject | InstanceObject) -> ObservedInstance:
    """Parse an Instance object; an unreadable mark counts as none. Raises ValueError."""
    found = read_as(InstanceObject, obj)
    metadata, spec = found.metadata, found.spec or NO_INSTANCE_SPEC
    label = (metadata.labels or {}).get(NODE_LABEL)
    is_shared = label == SHARED_LABEL_VALUE
    return ObservedInstance(
        slots=instance_slots(found),
        label=label,
        created=time_of(metadata.creation_timestamp or ""),
        offline_since=offline_since(metadata),
        properties=spec.broker_properties or {} if is_shared else {},
        broker_job=(metadata.annotations or {}).get(BROKER_JOB, ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Facts beside the Instances that decide about unseen Instances.

    Attributes:
        configurations: Configurations in force. Instances of others stay: an edit that makes a
            Configuration invalid for a minute removes nothing, and the Instances of a deleted
            Configuration are garbage-collected.
        existing: Names of all Nodes.
        gone: Names in `nodes` without a Node object for longer than the grace.
        claimed: Attribute values of the shared Instances that claims may have; None while they are
            not known.
    """

    configurations: Mapping[ConfigurationName, Configuration]
    existing: Collection[NodeName]
    gone: Collection[NodeName]
    claimed: Collection[str] | None


def may_be_claimed(slots: InstanceSlots, claimed: Collection[str] | None) -> bool:
    """Whether a claim may have the device; true while the allocations are not known."""
    return claimed is None or attribute_value(slots.name) in claimed


def plan_unseen(
    instances: Iterable[ObservedInstance], surroundings: Surroundings, *, now: datetime
) -> UnseenPlan:
    """The writes for Instances that no node sees."""
    labels = {label_value(name) for name in surroundings.existing}
    steps = [_step(observed, surroundings, labels, now) for observed in instances]
    return UnseenPlan(
        decisions=tuple(s for s in steps if s is not None and not isinstance(s, datetime)),
        recheck_at=min((s for s in steps if isinstance(s, datetime)), default=None),
    )


def _step(
    observed: ObservedInstance, around: Surroundings, labels: Collection[str], now: datetime
) -> UnseenDecision | datetime | None:
    """The write for one Instance now, or when to plan again."""
    slots = observed.slots
    if SLOTS_FINALIZER in slots.finalizers and not slots.holders:
        return free(slots)
    configuration = around.configurations.get(slots.configuration)
    if slots.deleted or configuration is None:
        return None
    if lost := slots.nodes.intersection(around.gone):
        return keep_nodes(slots, slots.nodes - lost)
    if observed.is_shared:
        return _shared(observed, offline_grace(configuration, shared=True), around, now)
    is_orphan = observed.label is not None and observed.label not in labels
    return _removal(observed) if is_orphan else None


def _shared(
    observed: ObservedInstance, grace: timedelta, around: Surroundings, now: datetime
) -> UnseenDecision | datetime | None:
    if observed.slots.nodes:
        return mark(observed.slots, None) if observed.offline_since else None
    if observed.offline_since is None:
        return mark(observed.slots, now)
    end = max(observed.offline_since + grace, observed.created + NEWBORN)
    if now < end:
        return end
    return None if may_be_claimed(observed.slots, around.claimed) else _removal(observed)


def _removal(observed: ObservedInstance) -> DeleteInstance | None:
    """The removal, unless the Instance is in use. The release of its last slot plans again."""
    slots = observed.slots
    if slots.nodes or slots.holders:
        return None
    return DeleteInstance(slots.namespace, slots.name, slots.uid, slots.resource_version)
