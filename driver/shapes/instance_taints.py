"""The DeviceTaintRules that select an Instance, by the names that its devices have in slices.

A rule names pools and devices, and an Instance has the same names whether its devices are offered
through DRA or through the device plugin:

    pool    shared/<configuration>; or <node> and local/<node>/<configuration>
    device  <instance>, for all of its slots; <instance>-<slot> for one of them

A Configuration whose name is no DNS label has other device names. Rules select its devices by pool,
and through the device plugin by the name of the Instance.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from driver.api import DRIVER_NAME, LOCAL_POOLS, SHARED_POOLS
from kube.shapes.taint_rules import DeviceTaintRule

_SLOT = re.compile(r"(?P<instance>.+)-(?P<index>0|[1-9][0-9]{0,3})")
"""The name of a slot, as `driver.device_ids` has it."""

_Key: TypeAlias = tuple[str | None, str | None, str | None]
"""Driver, pool, and device or Instance; None for any."""

UNKNOWN_POOL = ("",)
"""The pools of a device that no node sees now: only rules that name no pool select it."""


class TaintRuleIndex:
    """Rules, each found by what it selects, as kube-scheduler finds them.

    A cluster may have a rule for each of thousands of nodes, and few of them select one device.
    """

    def __init__(self, rules: Iterable[DeviceTaintRule] = ()) -> None:
        self._rules = tuple(sorted(rules, key=_name))
        self._by_device: dict[_Key, list[DeviceTaintRule]] = {}
        self._by_instance: dict[_Key, list[DeviceTaintRule]] = {}
        for rule in self._rules:
            selector = rule.selector
            if selector is None:
                continue
            driver, pool = selector.driver, selector.pool
            self._by_device.setdefault((driver, pool, selector.device), []).append(rule)
            for name in _instances_named(selector.device):
                self._by_instance.setdefault((driver, pool, name), []).append(rule)

    def __iter__(self) -> Iterator[DeviceTaintRule]:
        """All rules, sorted by name."""
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def selecting(self, driver: str, pool: str, device: str) -> list[DeviceTaintRule]:
        """The rules that select a device, sorted by name."""
        return _found(self._by_device, driver, (pool,), device)

    def tainting(
        self, instance: str, pools: Iterable[str], capacity: int
    ) -> list[tuple[DeviceTaintRule, range]]:
        """The rules that taint slots of an Instance, sorted by name, each with the slots.

        Args:
            instance: Its name.
            pools: The pools in which its devices may be published.
            capacity: How many slots it has.
        """
        found = _found(self._by_instance, DRIVER_NAME, pools, instance)
        tainted = ((rule, _slots(rule.device, instance, capacity)) for rule in found)
        return [(rule, slots) for rule, slots in tainted if slots]


def _found(
    table: Mapping[_Key, list[DeviceTaintRule]], driver: str, pools: Iterable[str], name: str
) -> list[DeviceTaintRule]:
    """The rules with these names, or with no name in their place."""
    if not table:
        return []
    keys = itertools.product((None, driver), (None, *pools), (None, name))
    found = (rule for key in keys for rule in table.get(key, ()))
    return sorted(found, key=_name)


def _name(rule: DeviceTaintRule) -> str:
    return rule.name


def instance_pools(configuration: str, nodes: Iterable[str], *, is_shared: bool) -> tuple[str, ...]:
    """The pools in which devices of an Instance may be published.

    Args:
        configuration: Its Configuration.
        nodes: The nodes that see it.
        is_shared: Whether several nodes may see it.
    """
    if is_shared:
        return (f"{SHARED_POOLS}{configuration}",)
    pools = (pool for node in nodes for pool in (node, f"{LOCAL_POOLS}{node}/{configuration}"))
    return tuple(pools) or UNKNOWN_POOL


def _slots(device: str | None, instance: str, capacity: int) -> range:
    """The slots of an Instance that a device's name selects: all, one, or none."""
    if device in (None, instance):
        return range(capacity)
    slot = _SLOT.fullmatch(device or "")
    if slot is None or slot["instance"] != instance:
        return range(0)
    return range(int(slot["index"]), min(int(slot["index"]) + 1, capacity))


def _instances_named(device: str | None) -> tuple[str | None, ...]:
    """The Instances whose devices may have this name; (None,) for any."""
    slot = _SLOT.fullmatch(device or "")
    return (device, slot["instance"]) if slot else (device,)
