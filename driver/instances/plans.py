"""All that a node writes of Instances at one moment: local ones whole, its part of shared ones.

Inventory, stored Instances ──planned──► decisions, in a fair order over the Configurations
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from driver.api import NodeName
from driver.configurations.configurations import offline_grace
from driver.derived import derived
from driver.instances.fair_order import fair_order
from driver.instances.inventory import Inventory
from driver.instances.local import Retention, plan_instances
from driver.instances.shared import SharedDecision, plan_shared, shared_body
from driver.instances.stored.objects import (
    ApplyInstance,
    InstanceDecision,
    StoredInstance,
    instance_body,
    is_of_another,
    place_of,
)
from driver.names import attribute_value

Decision = InstanceDecision | SharedDecision


@dataclass(frozen=True, slots=True)
class Seen:
    """What a node has read from the API server.

    Attributes:
        stored: Its own Instances and all shared ones.
        shown: Attribute values of the Instances that slices may have. They stay.
        claimable: Whether new shared Instances are offered through DRA, see `shared_paths`.
    """

    node: NodeName
    stored: tuple[StoredInstance, ...]
    shown: frozenset[str]
    claimable: bool


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What a node writes.

    Attributes:
        decisions: The writes, in a fair order.
        recheck_at: When to plan again although nothing changes; None for never.
        is_any_taken: Whether another device has a name that this node wants, see `names`.
    """

    decisions: tuple[Decision, ...]
    recheck_at: datetime | None
    is_any_taken: bool


def planned(inventory: Inventory, seen: Seen, now: datetime) -> NodePlan:
    """The writes that bring the Instances to this inventory and keep those still published."""
    of = inventory.configurations
    local = [derived(i, instance_body, of[i.configuration], seen.node) for i in inventory.local]
    shared = [shared_body(i, of[i.configuration]) for i in inventory.shared]
    own = [s for s in seen.stored if not s.is_shared]
    plan = plan_instances(local, own, _retention(inventory, own, seen, now))
    joins = plan_shared(
        shared,
        (s for s in seen.stored if s.is_shared),
        seen.node,
        unheard=inventory.unheard,
        claimable=seen.claimable,
    )
    return NodePlan(
        fair_order((*plan.decisions, *joins), _configuration_of),
        plan.recheck_at,
        _is_any_taken((*local, *shared), seen.stored),
    )


def _retention(
    inventory: Inventory, own: Iterable[StoredInstance], seen: Seen, now: datetime
) -> Retention:
    configurations = inventory.configurations.items()
    return Retention(
        unheard=inventory.unheard,
        held=frozenset(s.name for s in own if attribute_value(s.name) in seen.shown),
        graces={name: offline_grace(c, shared=False) for name, c in configurations},
        now=now,
    )


def _is_any_taken(bodies: Iterable[Mapping[str, Any]], stored: Iterable[StoredInstance]) -> bool:
    by_place = {(s.namespace, s.name): s for s in stored}
    return any(
        derived(by_place[place], is_of_another, body)
        for body in bodies
        if (place := place_of(body)) in by_place
    )


def _configuration_of(decision: Decision) -> str:
    """The Configuration of a decision. A delete has only the name, `<configuration>-<hash>`."""
    if isinstance(decision, ApplyInstance):
        return str(decision.body["spec"]["configurationName"])
    return decision.name.rpartition("-")[0]
