"""Which pool of a node shows a device: the node's own, or that of a Configuration with many.

    Inventory, homes ──local_supplies──► Supply of each pool

A pool is written as a whole, and none of its devices is to be had meanwhile. So the devices of a
Configuration that has more of them than one slice takes are in a pool of their own: while thousands
come or go, the node's own pool is as quick as ever.

A claim names a device by its pool, and kube-scheduler counts what is given by pool and device.
Were a device to change its pool while a claim has it, it could be given a second time. So whatever
a pool shows, or a prepared claim has out of it, has its home there until nothing says so any more.
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
from driver.publishing.shown.deductions import HeldSlots
from driver.publishing.shown.publication import Publication, Supply, local_supply
from driver.publishing.written.shards import SLICE_LIMIT

MOST_IN_THE_NODES_POOL = SLICE_LIMIT
"""Devices of a Configuration: what one slice takes."""

T = TypeVar("T")

Homes = Mapping[str, str]
"""By what tells a device, see `traces_of`, the pool in which it stays."""


@dataclass(frozen=True, slots=True)
class KnownPools:
    """What there is already.

    Attributes:
        homes: Of devices that are shown, or prepared.
        pools: All names.
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
    """What there is for each pool of a node, the smallest first: its own, known and new ones.

    Args:
        inventory: The node's.
        node: Whose name its own pool bears.
        known: What there is already.
        held: Slots that pods have through the device plugin.
        most: New devices of a Configuration with more are not for the node's own pool.
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
    """What tells the devices that a pool shows, also such as have another name by now."""
    return derived(shown, _traces_of)


def _traces_of(shown: Publication) -> frozenset[str]:
    instances = (offer.instance for offer in shown.offers.values() if offer.instance)
    return shown.shown_instances.union(*map(traces_of_instance, instances))


def traces_of_instance(instance: Instance) -> tuple[str, ...]:
    """The same of one device."""
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
    """Nothing that is another Configuration's: a pool is looked at anew when this is another."""
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
