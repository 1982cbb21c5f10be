"""Slots of nodes that are gone: released by the shared driver, since the node itself cannot.

A node that is not Ready may run its containers all the same: it may only be cut off. So its slots
are free once somebody vouches that they run no more: the Node was deleted, bears the taint
`node.kubernetes.io/out-of-service`, or has no pod on the API server that asks for them. Kubernetes
itself lets other pods have a node's volumes by the same words.

The node's own driver can continue from there. If the node comes back with its containers running,
slot reconciliation takes their slots back, or says in an Event who has them now.

    Nodes, names that Instances mention ──Absences──► lost, doubtful ──its pods──► plan_lost_nodes
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from driver.api import NodeName
from driver.device_ids import configuration_resource, instance_resource, slot_id
from driver.instances.slots.node_pods import NodePod
from driver.instances.slots.slot_writes import SlotWrite, slot_write
from driver.instances.slots.slots import InstanceSlots, slot_devices
from driver.instances.stored.device_usage import UnknownHolder
from driver.names import label_value
from kube.shapes.nodes import NO_SPEC, NO_STATUS, Node
from kube.shapes.reading import JsonObject, read_as
from kube.shapes.times import time_of, timestamp

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint by which an administrator says that a node is shut down (KEP-2268)."""

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeState:
    """A Node object.

    Attributes:
        away_since: Since when it is not Ready; None while it is.
        hostname: Its label, by which selectors mean it; None without one.
        out_of_service: Whether it bears the taint of that name.
    """

    name: NodeName
    away_since: datetime | None
    hostname: str | None = None
    out_of_service: bool = False


def node_state(obj: JsonObject | Node) -> NodeState:
    """Parse a Node; one that never said whether it is Ready is away since it was made.

    Raises ValueError.
    """
    node = read_as(Node, obj)
    metadata, spec = node.metadata, node.spec or NO_SPEC
    return NodeState(
        name=NodeName(metadata.name),
        away_since=_away_since(node),
        hostname=(metadata.labels or {}).get("kubernetes.io/hostname") or None,
        out_of_service=any(taint.key == OUT_OF_SERVICE for taint in spec.taints or ()),
    )


def _away_since(node: Node) -> datetime | None:
    created = node.metadata.creation_timestamp or ""
    for condition in (node.status or NO_STATUS).conditions or ():
        if condition.type == "Ready":
            changed = condition.last_transition_time or created
            return None if condition.status == "True" else time_of(changed)
    return time_of(created)


@dataclass(frozen=True, slots=True)
class Absences:
    """Which nodes are away, and since when.

    Attributes:
        not_ready: Nodes that exist.
        missing: Names that Instances mention and no Node has. Nobody says since when: it is the
            time at which it was first noticed.
        out_of_service: Those of `not_ready` that bear the taint.
    """

    not_ready: Mapping[NodeName, datetime] = field(default_factory=dict)
    missing: Mapping[NodeName, datetime] = field(default_factory=dict)
    out_of_service: frozenset[NodeName] = frozenset()

    def gone(self, *, grace: timedelta, now: datetime) -> frozenset[NodeName]:
        """Missing nodes that have been so for longer than the grace."""
        return frozenset(name for name, since in self.missing.items() if now - since >= grace)

    def lost(self, *, grace: timedelta, now: datetime) -> frozenset[NodeName]:
        """Nodes whose containers run no more, whatever their pods say."""
        return self.gone(grace=grace, now=now) | self.out_of_service

    def doubtful(self, *, grace: timedelta, now: datetime) -> frozenset[NodeName]:
        """Nodes that have not been Ready for longer than the grace: their pods decide."""
        away = {name for name, since in self.not_ready.items() if now - since >= grace}
        return frozenset(away - self.out_of_service)

    def recheck_at(
        self, holding: Collection[NodeName], *, grace: timedelta, now: datetime
    ) -> datetime | None:
        """When the grace of the next of these nodes ends; None where none is running."""
        away = {**self.missing, **self.not_ready}
        ends = [since + grace for name, since in away.items() if name in holding]
        return min((end for end in ends if end > now), default=None)


def absences(
    nodes: Iterable[NodeState],
    mentioned: Collection[NodeName],
    before: Absences,
    *,
    now: datetime,
) -> Absences:
    """Which nodes are away now; `before` remembers since when names have been missing."""
    states = {state.name: state for state in nodes}
    missing = {name: before.missing.get(name, now) for name in mentioned if name not in states}
    not_ready = {s.name: s.away_since for s in states.values() if s.away_since is not None}
    shut_down = frozenset(name for name in not_ready if states[name].out_of_service)
    return Absences(not_ready, missing, shut_down)


def asked_for(pods: Iterable[NodePod]) -> frozenset[str]:
    """The resources of which pods may still use a device, whoever started them."""
    return frozenset(resource for pod in pods if not pod.finished for resource in pod.requests)


def plan_lost_nodes(
    instances: Iterable[InstanceSlots], lost: Mapping[NodeName, Collection[str]]
) -> tuple[SlotWrite, ...]:
    """Release what lost nodes hold, one write per Instance and node, in that node's name.

    Several writes of one Instance carry the same version: after the first the others conflict and
    are decided again.

    Args:
        instances: All that exist, read before the pods were.
        lost: Nodes and names of nodes that do not exist, each with the resources that pods of it
            may still use. Slots of those are kept.
    """
    return tuple(
        slot_write(slots, node, dict.fromkeys(free, None))
        for slots in instances
        for node in sorted(holding_nodes(slots) & lost.keys())
        if (free := _free(slots, node, lost[node]))
    )


def _free(slots: InstanceSlots, node: NodeName, asked: Collection[str]) -> tuple[int, ...]:
    """The slots of a node that no pod of it can be using."""
    either = {configuration_resource(slots.configuration), instance_resource(slots.name)}
    return tuple(
        index
        for index, device in slot_devices(slots, node).items()
        if not ({device.resource} if device else either).intersection(asked)
    )


def plan_strangers(local: Iterable[tuple[InstanceSlots, str]]) -> tuple[SlotWrite, ...]:
    """Release what others hold of a device that one node has for itself.

    No driver gives such a slot, and that of the node named looks at no such Instance: somebody
    wrote it by hand, and nobody else would ever free it.

    Args:
        local: Instances of such devices, each with the node's name as the value of a label.
    """
    return tuple(
        slot_write(slots, node, dict.fromkeys(slots.held_by(node), None))
        for slots, label in local
        for node in sorted(holding_nodes(slots))
        if label_value(node) != label
    )


def holding_nodes(slots: InstanceSlots) -> frozenset[NodeName]:
    """The nodes that hold slots of an Instance."""
    return frozenset(h.node for h in slots.holders.values() if not isinstance(h, UnknownHolder))


def lost_sentence(write: SlotWrite, away: Absences) -> str:
    """What was released and why, for an Event."""
    slots = ", ".join(slot_id(write.instance, index) for index in sorted(write.changes))
    return f"Node {write.node} {_why(write.node, away)}: it holds {slots} no longer."


def _why(node: NodeName, away: Absences) -> str:
    if node in away.out_of_service:
        return f"has the taint {OUT_OF_SERVICE}"
    if since := away.not_ready.get(node):
        return f"is not Ready since {timestamp(since)}, and its pods are gone"
    return "does not exist" if node in away.missing else "does not see the device"
