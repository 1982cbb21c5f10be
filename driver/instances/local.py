"""Local Instances, whose devices only one node sees: what that node writes of them.

    wanted bodies, stored Instances ──plan_instances──► ApplyInstance | DeleteInstance

    present ──its device goes──► marked with the time ──grace over, not in use──► removed
      ▲                             │
      └──── its device is back ─────┘

`shared` decides about devices that several nodes see.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from driver.api import ConfigurationName, InstanceName
from driver.derived import derived
from driver.instances.stored.objects import (
    ApplyInstance,
    DeleteInstance,
    InstanceDecision,
    StoredInstance,
    is_anothers,
    offline_mark,
    place_of,
    says,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What keeps an Instance whose device is gone.

    Attributes:
        unheard: Configurations whose devices are not all known. Their Instances stay.
        held: Instances that stay because a pool still shows their device.
        graces: How long other Instances stay, by Configuration; a missing entry means no time.
        now: The present.
    """

    unheard: Collection[ConfigurationName] = ()
    held: Collection[InstanceName] = ()
    graces: Mapping[ConfigurationName, timedelta]
    now: datetime

    def grace(self, stored: StoredInstance) -> timedelta:
        return self.graces.get(stored.configuration, timedelta())

    def end(self, stored: StoredInstance) -> datetime | None:
        """When its grace ends; None if it is over, if there is none, or while it is in use."""
        grace = self.grace(stored)
        if not grace or stored.name in self.held or stored.slots_used:
            return None
        end = (stored.offline_since or self.now) + grace
        return end if end > self.now else None


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """The writes, and when to plan again although nothing changes; None for never."""

    decisions: tuple[InstanceDecision, ...]
    recheck_at: datetime | None


def plan_instances(
    wanted: Iterable[Mapping[str, Any]], stored: Iterable[StoredInstance], retention: Retention
) -> InstancePlan:
    """The writes that bring this node's local Instances to the desired state.

    An Instance of another device is left alone; the next inventory avoids its name.

    Args:
        wanted: The desired bodies, from `instance_body`.
        stored: The stored local Instances of this node.
        retention: What keeps Instances that are not desired. They are on no node meanwhile.
    """
    remaining = {(s.namespace, s.name): s for s in stored}
    applies: list[InstanceDecision] = []
    for body in wanted:
        existing = remaining.pop(place_of(body), None)
        if existing is None:
            applies.append(ApplyInstance(body, is_new=True))
        elif not derived(existing, says, body) and not is_anothers(body, existing.body):
            applies.append(ApplyInstance(body))
    gone = [s for s in remaining.values() if s.configuration not in retention.unheard]
    steps = [step for s in gone if (step := _step(s, retention)) is not None]
    ends = [end for s in gone if (end := retention.end(s)) is not None]
    return InstancePlan((*applies, *steps), min(ends, default=None))


def _step(stored: StoredInstance, retention: Retention) -> InstanceDecision | None:
    if stored.name in retention.held and stored.configuration not in retention.graces:
        return None  # It is removed as soon as it is not held, and needs no mark until then.
    is_used = stored.name in retention.held or stored.slots_used
    if not is_used and retention.end(stored) is None:
        return DeleteInstance(stored.namespace, stored.name, stored.uid, stored.resource_version)
    is_marked = stored.offline_since is not None or not retention.grace(stored)
    if not stored.nodes and is_marked:
        return None
    return ApplyInstance(_absent(stored, retention))


def _absent(stored: StoredInstance, retention: Retention) -> Mapping[str, Any]:
    """The object while it is on no node; marked with the time if it has a grace period."""
    metadata, spec = stored.body["metadata"], stored.body["spec"]
    if retention.grace(stored):
        mark = offline_mark(stored.offline_since or retention.now)
        metadata = {**metadata, "annotations": {**metadata["annotations"], **mark}}
    return {**stored.body, "metadata": metadata, "spec": {**spec, "nodes": []}}
