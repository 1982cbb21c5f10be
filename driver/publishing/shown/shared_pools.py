"""Pools of the devices that several nodes see: one for each Configuration.

    Configuration, its shared Instances, Nodes ──shared_supply──► Supply ──► publication
    a node's inventory, all shared Instances ──shared_devices──► what that node prepares

Only Instances that say so are published, see `instances.shared_paths`.

Who sees a device is told by the Instance, where each of these nodes has entered itself. That is
exact, as long as the nodes are listed: a node that joins the cluster is offered nothing before its
driver has seen the device, even while the shared driver is down. Only of devices that more than
`LISTED_NODES` see the list is left out, if that is every node there is: kube-scheduler compares
each node with the whole list of each slice. When another node joins, the list is back before it is
Ready, since a Node exists before it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from driver.api import Configuration, DeviceName, InstanceName, NodeName
from driver.derived import derived
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.instances.slots.lost_nodes import NodeState
from driver.instances.stored.objects import StoredInstance
from driver.instances.unseen import InstanceSight
from driver.names import shared_pool
from driver.publishing.shown.publication import Supply
from driver.publishing.shown.slices import Features, device_names
from driver.publishing.written.resource_slices import AllNodesScope, Scope, hostnames

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
        if sight.slots.claimable and (scope := nodes.scope(sight.slots.nodes)) is not None
    }
    return Supply(
        instances=tuple(
            derived(there[name], instance_of_sight, configuration) for name in sorted(scopes)
        ),
        lingering=frozenset(there.keys() - scopes.keys()),
        scopes=scopes,
        effects={configuration.name: configuration.offline_taint_effect},
        held={
            (sight.slots.namespace, name): len(sight.slots.holders)
            for name, sight in there.items()
            if sight.slots.holders
        },
    )


class Urgency(Enum):
    """How soon a change of an Instance is to be seen in its pool."""

    NEVER = auto()
    SOON = auto()
    """With others of its kind: whom a device is for is a matter of whole slices, and a node that
    comes to see a thousand devices says so a thousand times."""
    NOW = auto()


def urgency(old: InstanceSight | None, new: InstanceSight | None) -> Urgency:
    """What two versions of an Instance, of which one may be none, are to its pool."""
    if _concern(old) == _concern(new):
        return Urgency.NEVER
    if old is None or new is None or not (old.slots.nodes and new.slots.nodes):
        return Urgency.NOW
    other_nodes = replace(old, slots=replace(old.slots, nodes=new.slots.nodes))
    return Urgency.SOON if _concern(other_nodes) == _concern(new) else Urgency.NOW


def _concern(sight: InstanceSight | None) -> object:
    if sight is None or not sight.is_shared:
        return None
    slots = sight.slots
    return (
        slots.configuration,
        slots.nodes,
        slots.deleted,
        slots.claimable,
        slots.holders.keys(),
        sight.properties,
    )


def instance_of_sight(sight: InstanceSight, configuration: Configuration) -> Instance:
    """A shared Instance as its Configuration offers it, without what only a node can know.

    Mounts and device nodes are of the node that prepares a claim.
    """
    return _instance(sight.slots.name, sight.properties, configuration)


def _instance(
    name: InstanceName, properties: Mapping[str, str], configuration: Configuration
) -> Instance:
    return Instance(
        name=name,
        hash=name.removeprefix(f"{configuration.name}-"),
        configuration=configuration.name,
        namespace=configuration.namespace,
        properties=properties,
        mounts=(),
        device_specs=(),
        capacity=configuration.capacity,
        unique_devices=configuration.unique_devices,
        shared=True,
        user_attributes=configuration.attributes,
    )


def shared_devices(
    inventory: Inventory, stored: Iterable[StoredInstance], features: Features
) -> Mapping[tuple[str, DeviceName], Instance]:
    """What a node can prepare of shared pools, and what it could as long as it saw the device.

    The names are those under which the shared driver publishes, since both make them of the
    Instances' names.

    Args:
        inventory: What the node sees.
        stored: All shared Instances. Those that it does not see are offline here; of those that
            say that they are for the device plugin, or of which all slots are held through it, a
            claim that comes late is prepared nowhere.
        features: What the API server keeps of a device.
    """
    known = tuple(stored)
    withheld = {instance.name for instance in known if not _may_be_prepared(instance)}
    by_name = {instance.name: instance for instance in inventory.shared}
    for instance in _unseen(inventory, known):
        by_name.setdefault(instance.name, instance)
    pools: dict[str, list[Instance]] = {}
    for instance in by_name.values():
        pools.setdefault(shared_pool(instance.configuration), []).append(instance)
    return {
        (pool, name): instance
        for pool, instances in pools.items()
        for name, instance in device_names(instances, features).items()
        if instance.name not in withheld
    }


def _may_be_prepared(instance: StoredInstance) -> bool:
    """Whether a claim can rightly have the device, by what its Instance says now."""
    return instance.claimable and len(instance.holders) < instance.capacity


def _unseen(inventory: Inventory, stored: Iterable[StoredInstance]) -> Iterator[Instance]:
    for instance in stored:
        configuration = inventory.configurations.get(instance.configuration)
        if configuration is None or instance.configuration in inventory.unheard:
            continue
        if instance.namespace == configuration.namespace:
            found = _instance(instance.name, instance.properties, configuration)
            yield replace(found, online=False)
