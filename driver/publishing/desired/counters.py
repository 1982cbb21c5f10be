"""Counters: how kube-scheduler keeps claims of rivals apart (Instances of the same device).

    Instances of a pool ──counters_of──► counter sets, and what each device consumes of them

A counter set has one unit for each concurrent use: the sum of the slots of the rivals with more
than one slot, or one unit if there are none. A device with a single use consumes all units.

    disks: one user      consumes 5 ┐
    logs: two slots      consumes 2 ├─ a set of 5, as many as the slots
    tests: three slots   consumes 3 ┘

kube-scheduler counts within a pool, so rivals in two pools are kept apart at prepare only. A claim
that is allocated keeps its devices, even if their consumption changes afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver.instances.instances import Instance
from driver.instances.rivals import Rivalry, is_shareable, rivalries
from driver.names import short_hash
from driver.publishing.desired.slices import Features, has_slots, quantity

SETS_OF_A_DEVICE = 2
"""`ResourceSliceMaxDeviceCounterConsumptionsPerDevice` of resource.k8s.io/v1."""

CONSUMES = "consumesCounters"
_UNITS = "units"

Body = Mapping[str, Any]
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of one pool.

    Attributes:
        sets: The `CounterSet` objects of resource.k8s.io/v1.
        consumed: What each device of an Instance consumes, by the Instance's namespace and name.
    """

    sets: tuple[Body, ...] = ()
    consumed: Mapping[_Key, list[Body]] = field(default_factory=dict)

    def added_to(self, body: Body, instance: Instance | None) -> Body:
        """A `Device` with its consumption; `instance` is None for an absent device.

        An absent device consumes nothing. A device that consumes from a set that its pool does not
        have makes the pool invalid, so earlier consumption is removed.
        """
        consumed = self.consumed.get(_key(instance)) if instance else None
        if consumed is None and CONSUMES not in body:
            return body
        others = {name: value for name, value in body.items() if name != CONSUMES}
        return {**others, CONSUMES: consumed} if consumed else others


def counters_of(instances: Iterable[Instance], features: Features) -> Counters:
    """The counters for the Instances whose devices are in a pool.

    An Instance may have more rivalries than a device may have counter sets. The other rivals are
    kept apart at prepare.
    """
    if not features.counters:
        return Counters()
    sets: list[Body] = []
    consumed: dict[_Key, list[Body]] = defaultdict(list)
    for rivalry in rivalries(instances):
        keys = [_key(instance) for instance in rivalry.instances]
        if any(len(consumed.get(key, ())) >= SETS_OF_A_DEVICE for key in keys):
            continue
        name, units = _name(keys), _units(rivalry)
        sets.append({"name": name, "counters": _counter(units)})
        for instance, key in zip(rivalry.instances, keys, strict=True):
            taken = _counter(_taken(instance, units, features))
            consumed[key].append({"counterSet": name, "counters": taken})
    return Counters(tuple(sets), dict(consumed))


def _key(instance: Instance) -> _Key:
    return instance.namespace, instance.name


def _name(keys: Iterable[_Key]) -> str:
    """Name of the counter set, the same as long as the rivals are the same."""
    return f"rivals-{short_hash(' '.join('/'.join(key) for key in keys))}"


def _units(rivalry: Rivalry) -> int:
    return sum(i.capacity for i in rivalry.instances if is_shareable(i)) or 1


def _taken(instance: Instance, units: int, features: Features) -> int:
    """Units that each device of an Instance takes; a device with slots takes them once."""
    if not is_shareable(instance):
        return units
    return instance.capacity if has_slots(instance, features) else 1


def _counter(units: int) -> Body:
    return {_UNITS: {"value": quantity(units)}}
