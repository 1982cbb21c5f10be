"""Pools of the devices that several nodes see: one for each Configuration.

    Configuration, its shared Instances, Nodes ──shared_supply──► Supply ──► publication
    a node's inventory, all shared Instances ──shared_devices──► what that node prepares

An Instance is published only if it is offered through DRA, see `instances.shared_paths`.

The Instance lists the nodes that see the device; each node adds itself. The list is exact: a node
that joins the cluster is offered nothing before its driver has seen the device, even while the
shared driver is down. The list is left out if more than `LISTED_NODES` nodes see the device and
they are all nodes of the cluster, because kube-scheduler compares each node with the whole list of
each slice. When another node joins, the list is written again before that node is Ready, since a
Node object exists before the node is Ready.
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
from driver.instances.unseen_instances import ObservedInstance
from driver.names import shared_pool
from driver.publishing.apply.resource_slices import AllNodesScope, Scope, hostnames
from driver.publishing.desired.publication import Supply
from driver.publishing.desired.slices import Features, device_names

LISTED_NODES = 100
"""Most nodes of a list that names all nodes of the cluster."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of the cluster.

    Attributes:
        hostnames: Value of the label `kubernetes.io/hostname` by node; None for a node without the
            label, which no selector can select.
    """

    hostnames: Mapping[NodeName, str | None]
    _scopes: dict[frozenset[NodeName], Scope | None] = field(default_factory=dict)

    def scope(self, seeing: frozenset[NodeName]) -> Scope | None:
        """The scope of a device that these nodes see; None if none of them can be selected.

        Nodes that do not exist are ignored.
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
    configuration: Configuration, observed_instances: Iterable[ObservedInstance], nodes: Nodes
) -> Supply:
    """The supply of the pool of a Configuration.

    Args:
        configuration: The Configuration in force. Its current fields count, not those that nodes
            have copied into Instances. Only properties are read from the Instance.
        observed_instances: Shared Instances that name it; other namespaces are left out.
        nodes: All nodes of the cluster.
    """
    there = {
        observed.slots.name: observed
        for observed in observed_instances
        if observed.slots.namespace == configuration.namespace and not observed.slots.deleted
    }
    scopes = {
        name: scope
        for name, observed in there.items()
        if observed.slots.claimable and (scope := nodes.scope(observed.slots.nodes)) is not None
    }
    return Supply(
        instances=tuple(
            derived(there[name], instance_of_observed, configuration) for name in sorted(scopes)
        ),
        lingering=frozenset(there.keys() - scopes.keys()),
        scopes=scopes,
        effects={configuration.name: configuration.offline_taint_effect},
        held={
            (observed.slots.namespace, name): len(observed.slots.holders)
            for name, observed in there.items()
            if observed.slots.holders
        },
    )


class Urgency(Enum):
    """How soon a change of an Instance must reach its pool."""

    NEVER = auto()
    SOON = auto()
    """Gathered with similar changes: a change of the nodes that see a device rewrites whole slices,
    and a node that newly sees a thousand devices updates a thousand Instances."""
    NOW = auto()


def urgency(old: ObservedInstance | None, new: ObservedInstance | None) -> Urgency:
    """How soon the pool must follow a change of an Instance; None for an absent version."""
    if _concern(old) == _concern(new):
        return Urgency.NEVER
    if old is None or new is None or not (old.slots.nodes and new.slots.nodes):
        return Urgency.NOW
    other_nodes = replace(old, slots=replace(old.slots, nodes=new.slots.nodes))
    return Urgency.SOON if _concern(other_nodes) == _concern(new) else Urgency.NOW


def _concern(observed: ObservedInstance | None) -> object:
    if observed is None or not observed.is_shared:
        return None
    slots = observed.slots
    return (
        slots.configuration,
        slots.nodes,
        slots.deleted,
        slots.claimable,
        slots.holders.keys(),
        observed.properties,
    )


def instance_of_observed(observed: ObservedInstance, configuration: Configuration) -> Instance:
    """A shared Instance as its Configuration offers it, without mounts and device nodes.

    Only the node that prepares a claim knows these.
    """
    return _instance(observed.slots.name, observed.properties, configuration)


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
    """The devices of shared pools that a node can prepare, or could prepare while it saw them.

    The names are the same as in the shared driver's slices, since both derive them from the names
    of the Instances.

    Args:
        inventory: The inventory of the node.
        stored: All shared Instances. Those that the node does not see are offline here. A device is
            left out, so that no late claim is prepared, if its Instance is offered through the
            device plugin, or if all its slots are held.
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
    """Whether the Instance allows that a claim has the device."""
    return instance.claimable and len(instance.holders) < instance.capacity


def _unseen(inventory: Inventory, stored: Iterable[StoredInstance]) -> Iterator[Instance]:
    for instance in stored:
        configuration = inventory.configurations.get(instance.configuration)
        if configuration is None or instance.configuration in inventory.unheard:
            continue
        if instance.namespace == configuration.namespace:
            found = _instance(instance.name, instance.properties, configuration)
            yield replace(found, online=False)
