"""Shared Instances, whose devices several nodes see: what one of these nodes writes of them.

    wanted bodies, stored Instances ──plan_shared──► JoinInstance | LeaveInstance

All nodes that see a device write one object, and no node waits for another:

* The first node by name that sees the device writes the body (all but `nodes` and `deviceUsage`).
  All nodes use the same field manager for the body: so the next writer needs no handover, and a
  dropped property is removed. The field manager is named after the device: a node that means
  another device with the same hash uses another one, and the API server refuses its body.
* Each node has its own entry in `nodes`, with a field manager of its own.
* The shared driver removes the object when no node sees the device any more: see `unseen`.

Nothing here depends on what another node will do next. If two nodes both consider themselves the
first, they write the same body, and then one of them sees the other's entry and stops.
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
    """Join the nodes that see a device.

    Attributes:
        uid: UID of the object to join; None if there is none yet, and applying the body makes it.
        body: The body to apply; None if it is right already, or if another node writes it.
        enter: Whether the node is missing in `nodes`. It enters before it writes the body of an
            existing object: an admission policy refuses bodies of other nodes.
        is_known: Whether there is an object with the digest of this device.
    """

    namespace: str
    name: InstanceName
    uid: str | None
    body: Mapping[str, Any] | None
    enter: bool
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class LeaveInstance:
    """Leave the nodes that see the device of this object."""

    namespace: str
    name: InstanceName
    uid: str


SharedDecision = JoinInstance | LeaveInstance


def shared_body(instance: Instance, configuration: Configuration) -> Mapping[str, Any]:
    """The body that the first of the nodes that see a device writes."""
    return labelled_body(instance, configuration, SHARED_LABEL_VALUE)


def entry_body(namespace: str, name: InstanceName, *nodes: NodeName) -> Mapping[str, Any]:
    """The body that a node applies for its entry in `nodes`; without nodes it removes the entry."""
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
    """The writes of a node that bring shared Instances to what it sees.

    Args:
        wanted: Bodies from `shared_body`, one for each device that the node sees.
        stored: All stored shared Instances.
        node: The node.
        unheard: Configurations whose devices are not all known. The node leaves none of their
            Instances.
        claimable: Whether new Instances are offered through DRA, see `shared_paths`.
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
    """The body with the annotation of the path as it is now.

    A body without the annotation would remove it, since all bodies have the same field manager.
    """
    if not claimable:
        return body
    metadata = body["metadata"]
    annotations = {**metadata.get("annotations", {}), OFFERED_THROUGH: OfferPath.DRA.value}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def body_of(stored: StoredInstance) -> Mapping[str, Any]:
    """The stored object without `nodes`, to be compared with `shared_body`."""
    spec = {field: value for field, value in stored.body["spec"].items() if field != "nodes"}
    return {**stored.body, "spec": spec}
