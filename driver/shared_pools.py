"""Pools of the devices that several nodes see: one for each Configuration.

    Configuration, its shared Instances, Nodes ──shared_supply──► Supply ──► publication

Who sees a device is told by the Instance, where each of these nodes has entered itself. That is
exact, as long as the nodes are listed: a node that joins the cluster is offered nothing before its
driver has seen the device, even while the shared driver is down. Only of devices that more than
`LISTED_NODES` see the list is left out, if that is every node there is: kube-scheduler compares
each node with the whole list of each slice. When another node joins, the list is back before it is
Ready, since a Node exists before it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver.api import Configuration, NodeName
from driver.instances import Instance
from driver.lost_nodes import NodeState
from driver.publication import Supply
from driver.resource_slices import AllNodesScope, Scope, hostnames
from driver.unseen_instances import InstanceSight

LISTED_NODES = 100
"""How many nodes are listed although they are all there are."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The Nodes that there are.

    Attributes:
        hostnames: Values of the label `kubernetes.io/hostname`; None for a node without it, which
            no selector can mean.
    """

    hostnames: Mapping[NodeName, str | None]
    _scopes: dict[frozenset[NodeName], Scope | None] = field(default_factory=dict)

    def scope(self, seeing: frozenset[NodeName]) -> Scope | None:
        """Who can use a device that these nodes see; None if that is nobody.

        Nodes that do not exist count for nothing.
        """
        if seeing not in self._scopes:
            self._scopes[seeing] = self._scope(seeing)
        return self._scopes[seeing]

    def _scope(self, seeing: frozenset[NodeName]) -> Scope | None:
        if len(self.hostnames) > LISTED_NODES and seeing.issuperset(self.hostnames):
            return AllNodesScope()
        values = frozenset(filter(None, map(self.hostnames.get, seeing)))
        return hostnames(values) if values else None


def nodes_of(states: Iterable[NodeState]) -> Nodes:
    return Nodes({state.name: state.hostname for state in states})


def shared_supply(
    configuration: Configuration, sights: Iterable[InstanceSight], nodes: Nodes
) -> Supply:
    """What there is for the pool of a Configuration.

    Args:
        configuration: In force. What it asks for now counts, and not what of it nodes have
            written into Instances so far; only properties are the Instance's.
        sights: Shared Instances that name it; those of its namesakes are left out.
        nodes: All there are.
    """
    there = {
        sight.slots.name: sight
        for sight in sights
        if sight.slots.namespace == configuration.namespace and not sight.slots.deleted
    }
    scopes = {
        name: scope
        for name, sight in there.items()
        if (scope := nodes.scope(sight.slots.nodes)) is not None
    }
    return Supply(
        instances=tuple(instance_of_sight(there[name], configuration) for name in sorted(scopes)),
        lingering=frozenset(there.keys() - scopes.keys()),
        scopes=scopes,
        effects={configuration.name: configuration.offline_taint_effect},
        held={
            (sight.slots.namespace, name): len(sight.slots.holders)
            for name, sight in there.items()
            if sight.slots.holders
        },
    )


def is_seen_otherwise(old: InstanceSight | None, new: InstanceSight | None) -> bool:
    """Whether the two versions of an Instance, of which one may be none, differ for its pool."""
    return _concern(old) != _concern(new)


def _concern(sight: InstanceSight | None) -> object:
    if sight is None or not sight.is_shared:
        return None
    slots = sight.slots
    return slots.configuration, slots.nodes, slots.deleted, slots.holders.keys(), sight.properties


def instance_of_sight(sight: InstanceSight, configuration: Configuration) -> Instance:
    """A shared Instance as its Configuration offers it, without what only a node can know.

    Mounts and device nodes are of the node that prepares a claim.
    """
    name = sight.slots.name
    return Instance(
        name=name,
        hash=name.removeprefix(f"{configuration.name}-"),
        configuration=configuration.name,
        namespace=configuration.namespace,
        properties=sight.properties,
        mounts=(),
        device_specs=(),
        capacity=configuration.capacity,
        unique_devices=configuration.unique_devices,
        shared=True,
        user_attributes=configuration.attributes,
    )
