"""Instances that several nodes hold: what one of these nodes writes of them.

    wanted bodies, stored Instances ──plan_shared──► JoinInstance | LeaveInstance

All nodes that see a device write one object, each without waiting for the others:

* The body (all but `nodes` and `deviceUsage`) is written by the first by name of the nodes that
  see the device. It has one owner of fields, whoever writes: so the next writer needs no handing
  over, and a property that is dropped is gone. The owner is called after the device: who means
  another device of the same hash is another owner, and the API server refuses its body.
* Its entry in `nodes` is each node's own, and so is the owner of that field.
* The object is removed by the shared driver, when no node sees the device any more: see
  `unseen`.

Nothing here depends on what another node will do next. Two nodes that both take themselves for the
first write the same body, and then the one that is not sees the other and stops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import (
    OFFERED_THROUGH,
    SHARED_LABEL_VALUE,
    Configuration,
    ConfigurationName,
    InstanceName,
    NodeName,
)
from driver.instances.instances import Instance
from driver.instances.stored.objects import StoredInstance, is_anothers, labelled_body, place_of
from driver.offer_paths import OfferPath
from kube.kinds import INSTANCES


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinInstance:
    """Be one of the nodes that see a device.

    Attributes:
        uid: Of the object to enter; None where there is none yet, and the body makes it.
        body: To be applied; None where it is right already or another node's to write.
        enter: Whether the node is not among `nodes` yet. It enters before it writes the body of
            an object that is there: a policy lets nobody else write one.
        is_known: Whether there is an object, and it says that it is of this device.
    """

    namespace: str
    name: InstanceName
    uid: str | None
    body: Mapping[str, Any] | None
    enter: bool
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class LeaveInstance:
    """Be no longer one of the nodes that see the device of this very object."""

    namespace: str
    name: InstanceName
    uid: str


SharedDecision = JoinInstance | LeaveInstance


def shared_body(instance: Instance, configuration: Configuration) -> Mapping[str, Any]:
    """What the first of the nodes that see a device writes."""
    return labelled_body(instance, configuration, SHARED_LABEL_VALUE)


def entry_body(namespace: str, name: InstanceName, *nodes: NodeName) -> Mapping[str, Any]:
    """What a node applies for its entry in `nodes`; without a node it gives the entry up."""
    body: dict[str, Any] = {
        "apiVersion": INSTANCES.api_version,
        "kind": "Instance",
        "metadata": {"name": name, "namespace": namespace},
    }
    return {**body, "spec": {"nodes": list(nodes)}} if nodes else body


def plan_shared(
    wanted: Iterable[Mapping[str, Any]],
    stored: Iterable[StoredInstance],
    node: NodeName,
    *,
    unheard: Collection[ConfigurationName],
    claimable: bool = False,
) -> tuple[SharedDecision, ...]:
    """What a node writes so that shared Instances say what it sees.

    Args:
        wanted: Bodies from `shared_body`, one for each device that the node sees.
        stored: All shared Instances as the API server has them.
        node: The node.
        unheard: Configurations whose handler has not answered yet: not heard is not gone, so the
            node stays where it is.
        claimable: What new ones say, see `shared_paths`.
    """
    remaining = {(s.namespace, s.name): s for s in stored}
    joins: list[SharedDecision] = []
    leaves: list[SharedDecision] = []
    for body in wanted:
        existing = remaining.pop(place_of(body), None)
        if existing is not None and is_anothers(body, existing.body):
            if node in existing.nodes:
                leaves.append(_leave(existing))
            continue
        join = _plan_seen(body, existing, node, existing.claimable if existing else claimable)
        if join.body is not None or join.enter:
            joins.append(join)
    leaves += (
        _leave(s) for s in remaining.values() if node in s.nodes and s.configuration not in unheard
    )
    return (*joins, *leaves)


def _leave(stored: StoredInstance) -> LeaveInstance:
    return LeaveInstance(stored.namespace, stored.name, stored.uid)


def _plan_seen(
    body: Mapping[str, Any], existing: StoredInstance | None, node: NodeName, claimable: bool
) -> JoinInstance:
    nodes = existing.nodes if existing else ()
    is_first = all(node <= other for other in nodes)
    is_right = existing is not None and body_of(existing) == body
    namespace, name = place_of(body)
    return JoinInstance(
        namespace=namespace,
        name=name,
        uid=existing.uid if existing else None,
        body=_saying(body, claimable) if is_first and not is_right else None,
        enter=node not in nodes,
        is_known=existing is not None and existing.device is not None,
    )


def _saying(body: Mapping[str, Any], claimable: bool) -> Mapping[str, Any]:
    """A body that leaves by which path the device is offered as it is.

    Left out, what an earlier body said would be taken away, as it has the same owner.
    """
    if not claimable:
        return body
    metadata = body["metadata"]
    annotations = {**metadata.get("annotations", {}), OFFERED_THROUGH: OfferPath.DRA.value}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def body_of(stored: StoredInstance) -> Mapping[str, Any]:
    """What `shared_body` made of it, as it is now."""
    spec = {field: value for field, value in stored.body["spec"].items() if field != "nodes"}
    return {**stored.body, "spec": spec}
