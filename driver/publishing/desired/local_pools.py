"""Which pool of a node has a device: the node's own pool, or the pool of one Configuration.

    Inventory, homes ──local_supplies──► Supply of each pool

A pool is written as a whole, and kube-scheduler allocates none of its devices meanwhile. So a
Configuration with more devices than one slice takes has a pool of its own. The node's own pool then
stays fast while thousands of devices come or go.

A claim names a device by its pool, and kube-scheduler counts allocations by pool and device. A
device that changed its pool while a claim has it could be allocated a second time. So a device
stays in its pool (its home) as long as the pool shows it or a prepared claim has it from there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from driver.api import ConfigurationName, NodeName
from driver.derived import derived
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.names import attribute_value, device_trace, local_pool
from driver.publishing.apply.shards import SLICE_LIMIT
from driver.publishing.desired.deductions import HeldSlots
from driver.publishing.desired.publication import Publication, Supply, local_supply

MOST_IN_THE_NODES_POOL = SLICE_LIMIT
"""Most devices of one Configuration in the node's own pool: as many as one slice takes."""

T = TypeVar("T")

Homes = Mapping[str, str]
"""The pool in which a device stays, by each key of the device, see `traces_of`."""


@dataclass(frozen=True, slots=True)
class KnownPools:
    """The pools that exist.

    Attributes:
        homes: The homes of devices that are published or prepared.
        pools: The names of all pools.
    """

    homes: Homes = field(default_factory=dict)
    pools: Collection[str] = ()


def local_supplies(
    inventory: Inventory,
    node: NodeName,
    known: KnownPools,
    held: HeldSlots | None = None,
    most: int = MOST_IN_THE_NODES_POOL,
) -> Mapping[str, Supply]:
    """The supply of each pool of a node, existing and new pools alike, the smallest pool first.

    Args:
        inventory: The inventory of the node.
        node: Name of the node, and of its own pool.
        known: The pools that exist.
        held: Slots that pods hold through the device plugin.
        most: If a Configuration has more devices than this, new ones go to a pool of its own.
    """
    whole, found = local_supply(inventory), defaultdict[str, list[Instance]](list)
    counts = Counter(instance.configuration for instance in inventory.local)
    for instance in inventory.local:
        is_one_of_many = counts[instance.configuration] > most
        new = local_pool(node, instance.configuration) if is_one_of_many else node
        found[_home(instance, known.homes) or new].append(instance)
    names = (*inventory.configurations, *inventory.unheard)
    configurations = {local_pool(node, name): name for name in names}
    supplies = {
        pool: _part(whole, found[pool], configurations.get(pool), held or {})
        for pool in {*found, *known.pools} - {node}
    }
    own = tuple(found[node])
    supplies[node] = replace(whole, instances=own, held=_held(own, held or {}))
    return dict(sorted(supplies.items(), key=lambda item: (len(item[1].instances), item[0])))


def traces_of(shown: Publication) -> frozenset[str]:
    """The keys of the devices that a pool shows, also of devices that were renamed since."""
    return derived(shown, _traces_of)


def _traces_of(shown: Publication) -> frozenset[str]:
    instances = (offer.instance for offer in shown.offers.values() if offer.instance)
    return shown.shown_instances.union(*map(traces_of_instance, instances))


def traces_of_instance(instance: Instance) -> tuple[str, ...]:
    """The keys of one device: the attribute value of its Instance, and its digest if known."""
    return derived(instance, _traces_of_instance)


def _traces_of_instance(instance: Instance) -> tuple[str, ...]:
    name = attribute_value(instance.name)
    if not instance.device:
        return (name,)
    return name, device_trace(instance.configuration, instance.device)


def _home(instance: Instance, homes: Homes) -> str | None:
    return next((homes[trace] for trace in traces_of_instance(instance) if trace in homes), None)


def _part(
    whole: Supply,
    instances: Sequence[Instance],
    configuration: ConfigurationName | None,
    held: HeldSlots,
) -> Supply:
    """The supply of one Configuration's pool; it changes only when that Configuration does."""
    return replace(
        whole,
        instances=tuple(instances),
        unheard=whole.unheard & {configuration},
        graces=_only(whole.graces, configuration),
        effects=_only(whole.effects, configuration),
        held=_held(instances, held),
    )


def _only(
    values: Mapping[ConfigurationName, T], name: ConfigurationName | None
) -> Mapping[ConfigurationName, T]:
    return {name: values[name]} if name is not None and name in values else {}


def _held(instances: Iterable[Instance], held: HeldSlots) -> HeldSlots:
    places = ((i.namespace, i.name) for i in instances) if held else ()
    return {place: held[place] for place in places if place in held}
