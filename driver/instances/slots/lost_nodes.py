"""Slots of lost nodes: the shared driver releases them, since the node itself cannot.

A node that is not Ready may still run its containers: it may only be disconnected. So its slots are
released only on evidence that the containers have ended: the Node was deleted, has the taint
`node.kubernetes.io/out-of-service`, or has no pod on the API server that requests the slots.
Kubernetes detaches the volumes of a node by the same evidence.

The node's own driver can continue from there. If the node comes back with its containers running,
slot reconciliation takes their slots again, or records an Event that names the new holder.

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
"""The taint by which an administrator states that a node is shut down (KEP-2268)."""

NOTHING_IN_USE: frozenset[str] = frozenset()
"""No resource: no pod of the node may use a device."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """A Node object.

    Attributes:
        not_ready_since: Since when it is not Ready; None while it is Ready.
        hostname: Its label `kubernetes.io/hostname`, for selectors; None without the label.
        out_of_service: Whether it has the taint of that name.
    """

    name: NodeName
    not_ready_since: datetime | None
    hostname: str | None = None
    out_of_service: bool = False


def node_state(obj: JsonObject | Node) -> NodeState:
    """Parse a Node. A node without a Ready condition is not Ready since its creation.

    Raises ValueError.
    """
    node = read_as(Node, obj)
    metadata, spec = node.metadata, node.spec or NO_SPEC
    return NodeState(
        name=NodeName(metadata.name),
        not_ready_since=_not_ready_since(node),
        hostname=(metadata.labels or {}).get("kubernetes.io/hostname") or None,
        out_of_service=any(taint.key == OUT_OF_SERVICE for taint in spec.taints or ()),
    )


def _not_ready_since(node: Node) -> datetime | None:
    created = node.metadata.creation_timestamp or ""
    for condition in (node.status or NO_STATUS).conditions or ():
        if condition.type == "Ready":
            changed = condition.last_transition_time or created
            return None if condition.status == "True" else time_of(changed)
    return time_of(created)


@dataclass(frozen=True, slots=True)
class Absences:
    """The nodes that are not Ready or do not exist, and since when.

    Attributes:
        not_ready: Nodes that exist and are not Ready.
        missing: Names that Instances mention and no Node has, each with the time of the first
            reconciliation that found it missing.
        out_of_service: The nodes of `not_ready` that have the taint.
    """

    not_ready: Mapping[NodeName, datetime] = field(default_factory=dict)
    missing: Mapping[NodeName, datetime] = field(default_factory=dict)
    out_of_service: frozenset[NodeName] = frozenset()

    def gone(self, *, grace: timedelta, now: datetime) -> frozenset[NodeName]:
        """Nodes that have been missing for longer than the grace."""
        return frozenset(name for name, since in self.missing.items() if now - since >= grace)

    def lost(self, *, grace: timedelta, now: datetime) -> frozenset[NodeName]:
        """Nodes whose containers have ended, whatever their pods on the API server say."""
        return self.gone(grace=grace, now=now) | self.out_of_service

    def doubtful(self, *, grace: timedelta, now: datetime) -> frozenset[NodeName]:
        """Nodes that have not been Ready for longer than the grace. Their pods decide."""
        absent = {name for name, since in self.not_ready.items() if now - since >= grace}
        return frozenset(absent - self.out_of_service)

    def recheck_at(
        self, holding: Collection[NodeName], *, grace: timedelta, now: datetime
    ) -> datetime | None:
        """When the next grace of these nodes ends; None if none runs."""
        absent = {**self.missing, **self.not_ready}
        ends = [since + grace for name, since in absent.items() if name in holding]
        return min((end for end in ends if end > now), default=None)


def absences(
    nodes: Iterable[NodeState],
    mentioned: Collection[NodeName],
    before: Absences,
    *,
    now: datetime,
) -> Absences:
    """The nodes that are not Ready or missing now; `before` has the times of missing names."""
    states = {state.name: state for state in nodes}
    missing = {name: before.missing.get(name, now) for name in mentioned if name not in states}
    not_ready = {
        s.name: s.not_ready_since for s in states.values() if s.not_ready_since is not None
    }
    shut_down = frozenset(name for name in not_ready if states[name].out_of_service)
    return Absences(not_ready, missing, shut_down)


def asked_for(pods: Iterable[NodePod]) -> frozenset[str]:
    """The resources of which a pod may still use a device."""
    return frozenset(resource for pod in pods if not pod.finished for resource in pod.requests)


def plan_lost_nodes(
    instances: Iterable[InstanceSlots], lost: Mapping[NodeName, Collection[str]]
) -> tuple[SlotWrite, ...]:
    """Release the slots of lost nodes: one write per Instance and node, in the node's name.

    Several writes of one Instance have the same version: after the first the others conflict and
    are decided again.

    Args:
        instances: All Instances, read before the pods.
        lost: Lost nodes, also such as do not exist, each with the resources that its pods may still
            use. Slots of these resources are kept.
    """
    return tuple(
        slot_write(slots, node, dict.fromkeys(free, None))
        for slots in instances
        for node in sorted(holding_nodes(slots) & lost.keys())
        if (free := _free(slots, node, lost[node]))
    )


def _free(slots: InstanceSlots, node: NodeName, asked: Collection[str]) -> tuple[int, ...]:
    """The slots of a node that none of its pods can use."""
    either = {configuration_resource(slots.configuration), instance_resource(slots.name)}
    return tuple(
        index
        for index, device in slot_devices(slots, node).items()
        if not ({device.resource} if device else either).intersection(asked)
    )


def plan_foreign_holders(local: Iterable[tuple[InstanceSlots, str]]) -> tuple[SlotWrite, ...]:
    """Release slots of local Instances that other nodes hold.

    No driver writes such a slot, and the driver of the node that holds it does not watch the
    Instance: an administrator wrote it by hand, and no other component would release it.

    Args:
        local: Local Instances, each with the name of its node as a label value.
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


def lost_sentence(write: SlotWrite, absent: Absences) -> str:
    """A sentence for an Event: the slots that were released, and why."""
    slots = ", ".join(slot_id(write.instance, index) for index in sorted(write.changes))
    return f"Node {write.node} {_why(write.node, absent)}: it holds {slots} no longer."


def _why(node: NodeName, absent: Absences) -> str:
    if node in absent.out_of_service:
        return f"has the taint {OUT_OF_SERVICE}"
    if since := absent.not_ready.get(node):
        return f"is not Ready since {timestamp(since)}, and its pods are gone"
    return "does not exist" if node in absent.missing else "does not see the device"
