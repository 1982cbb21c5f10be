"""Counters: by which kube-scheduler keeps rivals apart, devices that are one and the same.

    Instances of a pool ──counters_of──► counter sets, and what each device consumes of them

A set has as many units as there are users at a time: one, or all that those have together who offer
the device to several. Who offers it to one user consumes them all.

    disks: one user      consumes 5 ┐
    logs: two slots      consumes 2 ├─ a set of 5, as many as the slots
    tests: three slots   consumes 3 ┘

kube-scheduler counts by pool, so devices in two pools are kept apart at prepare alone. What is
allocated already keeps its devices, whatever it consumes from now on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver.instances.instances import Instance
from driver.instances.rivals import Rivalry, is_shareable, rivalries
from driver.names import short_hash
from driver.publishing.shown.slices import Features, has_slots, quantity

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
        sets: `CounterSet`s of resource.k8s.io/v1.
        consumed: By namespace and name of an Instance, what each of its devices consumes.
    """

    sets: tuple[Body, ...] = ()
    consumed: Mapping[_Key, list[Body]] = field(default_factory=dict)

    def added_to(self, body: Body, instance: Instance | None) -> Body:
        """A `Device` with what it consumes; None for one that is not there, which counts nothing.

        What consumes of a set that is not in its pool makes the pool invalid, so nothing stays
        that is not of now.
        """
        consumed = self.consumed.get(_key(instance)) if instance else None
        if consumed is None and CONSUMES not in body:
            return body
        others = {name: value for name, value in body.items() if name != CONSUMES}
        return {**others, CONSUMES: consumed} if consumed else others


def counters_of(instances: Iterable[Instance], features: Features) -> Counters:
    """The counters for the Instances whose devices a pool shows.

    One with rivals of more kinds than a device may have sets is kept apart at prepare.
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
    """The same as long as the rivals are the same."""
    return f"rivals-{short_hash(' '.join('/'.join(key) for key in keys))}"


def _units(rivalry: Rivalry) -> int:
    return sum(i.capacity for i in rivalry.instances if is_shareable(i)) or 1


def _taken(instance: Instance, units: int, features: Features) -> int:
    """By each of its devices; one with slots counts once, however many of them are given."""
    if not is_shareable(instance):
        return units
    return instance.capacity if has_slots(instance, features) else 1


def _counter(units: int) -> Body:
    return {_UNITS: {"value": quantity(units)}}
