"""The devices of all ResourceSlices, updated slice by slice from the watch.

    slices ──► put_slice, delete_slice ──► pools ──► offer, on, of_driver
    DeviceTaintRules ──► put_rule, delete_rule ──► taints of an offer

Only the slices of a pool's newest generation count, as in kube-scheduler. The cost of a changed
slice grows with the size of its pool, and not with other pools.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from driver.shapes.instance_taints import TaintRuleIndex
from kube.shapes.selection import Taint
from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.tables import Index, enter
from scheduler_plugin.reclaiming.placement.offers import Offer
from scheduler_plugin.reclaiming.placement.published_slices import (
    CounterName,
    PublishedDevice,
    PublishedSlice,
)

SEVERAL = ""
"""The key under which devices are listed that several nodes can use."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of one driver.

    Attributes:
        slices: The slices of all generations, sorted by name.
        devices: The devices of the newest generation, by name.
        is_complete: Whether all slices of the newest generation are known.
        counters: The counters that its devices share, in thousandths.
    """

    slices: tuple[PublishedSlice, ...] = ()
    devices: Mapping[str, PublishedDevice] = field(default_factory=dict)
    is_complete: bool = False
    counters: Mapping[CounterName, int] = field(default_factory=dict)


_NO_POOL = Pool()


class OfferedDevices:
    """All devices in slices. A read sees every earlier write, and later ones do not change it."""

    def __init__(self) -> None:
        self.changes = 0
        """The number of changes; equal numbers mean equal answers."""
        self._slices: dict[str, PublishedSlice] = {}
        self._pools: dict[str, dict[str, Pool]] = {}
        self._on: Index[str, DeviceId] = {}
        # The devices that several nodes can use, by node selector.
        self._selected: Index[str | None, DeviceId] = {}
        # The devices for one claim each, and the devices that claims share.
        self._whole: dict[DeviceId, None] = {}
        self._shared: dict[DeviceId, None] = {}
        self._listed_whole: tuple[DeviceId, ...] | None = None
        self._rules: dict[str, DeviceTaintRule] = {}
        self._rule_index: TaintRuleIndex | None = None
        # A cache by node: several decisions look at the same nodes.
        self._listed: dict[str, tuple[DeviceId, ...]] = {}

    def put_slice(self, found: PublishedSlice) -> None:
        """Enter or replace a slice, by its name."""
        if self._slices.get(found.name) != found:
            self._replace(found.name, found)

    def delete_slice(self, name: str) -> None:
        """Remove a slice, if it is known."""
        if name in self._slices:
            self._replace(name, None)

    def offer(self, device: DeviceId) -> Offer | None:
        """A device as it is offered now; None where no slice of the newest generation has it."""
        pool = self.pool(device.driver, device.pool)
        found = pool.devices.get(device.name)
        return Offer(found, pool.is_complete, self._added(device)) if found is not None else None

    def put_rule(self, rule: DeviceTaintRule) -> None:
        """Enter or replace a DeviceTaintRule, by its name; its status taints nothing."""
        before = self._rules.get(rule.name)
        if before is None or before.spec != rule.spec:
            self.delete_rule(rule.name)
            self._rules[rule.name] = rule
            self._renew_pools(rule)

    def delete_rule(self, name: str) -> None:
        """Remove a rule, if it is known."""
        if (before := self._rules.pop(name, None)) is not None:
            self._renew_pools(before)

    def _added(self, device: DeviceId) -> tuple[Taint, ...]:
        """The taints that rules add to a device."""
        if not self._rules:
            return ()
        if self._rule_index is None:
            self._rule_index = TaintRuleIndex(self._rules.values())
        return tuple(rule.taint for rule in self._rule_index.selecting(*device))

    def _renew_pools(self, rule: DeviceTaintRule) -> None:
        """Make the rule's pools new objects: what was remembered of their devices may be wrong."""
        self._rule_index = None
        selector = rule.selector
        if selector is not None:
            for driver in (selector.driver,) if selector.driver is not None else self._pools:
                self._renew_pools_of(driver, selector.pool, selector.device)
        self.changes += 1

    def _renew_pools_of(self, driver: str, pool: str | None, device: str | None) -> None:
        pools = self._pools.get(driver, {})
        for name in (pool,) if pool is not None else pools:
            found = pools.get(name)
            if found is not None and (device is None or device in found.devices):
                pools[name] = replace(found)

    def on(self, node: str) -> Sequence[DeviceId]:
        """The devices that only this node can use; for `SEVERAL`, those that several nodes can."""
        if node not in self._listed and node in self._on:
            self._listed[node] = tuple(self._on[node])
        return self._listed.get(node, ())

    def selectors(self) -> Collection[str | None]:
        """The node selectors of devices that several nodes can use, as text; None for all nodes."""
        return self._selected.keys()

    def selected_by(self, selector: str | None) -> Collection[DeviceId]:
        """The devices with this node selector."""
        return self._selected.get(selector, ())

    def pools(self, drivers: Collection[str]) -> Iterator[tuple[tuple[str, str], Pool]]:
        """The pools of these drivers, by driver and name; of all drivers where none is named.

        After each change a pool is a new object.
        """
        for driver in drivers or self._pools:
            for name, pool in self._pools.get(driver, {}).items():
                yield (driver, name), pool

    def of_driver(self, driver: str) -> Sequence[DeviceId]:
        """All devices of a driver."""
        pools = self._pools.get(driver, {}).values()
        return [found.device for pool in pools for found in pool.devices.values()]

    def of_drivers(self, drivers: Collection[str]) -> Sequence[DeviceId]:
        """All devices of these drivers; of all drivers where none is named."""
        return [device for driver in drivers or self._pools for device in self.of_driver(driver)]

    def whole(self) -> Sequence[DeviceId]:
        """The devices that only one claim at a time can have."""
        if self._listed_whole is None:
            self._listed_whole = tuple(self._whole)
        return self._listed_whole

    def shared(self) -> Sequence[DeviceId]:
        """The devices that several claims share."""
        return tuple(self._shared)

    def __len__(self) -> int:
        pools = (pool for of_driver in self._pools.values() for pool in of_driver.values())
        return sum(len(pool.devices) for pool in pools)

    def pool(self, driver: str, name: str) -> Pool:
        """A pool of a driver; one without devices where it is unknown."""
        return self._pools.get(driver, {}).get(name, _NO_POOL)

    def _replace(self, name: str, found: PublishedSlice | None) -> None:
        before = self._slices.pop(name, None)
        if found is not None:
            self._slices[name] = found
        if before is not None and (found is None or before.pool_key != found.pool_key):
            self._change_pool(before.pool_key, name, ())
        if found is not None:
            self._change_pool(found.pool_key, name, (found,))
        self.changes += 1

    def _change_pool(
        self, key: tuple[str, str], name: str, instead: tuple[PublishedSlice, ...]
    ) -> None:
        """Replace the slice of this name in a pool, or remove it where `instead` is empty."""
        before = self.pool(*key)
        others = (found for found in before.slices if found.name != name)
        slices = sorted((*others, *instead), key=lambda found: found.name)
        after = _pool_of(slices) if slices else _NO_POOL
        self._enter_pool(key, after)
        self._list(_only_in(before, after), -1)
        self._list(_only_in(after, before), 1)
        self._listed_whole = None
        for found in before.devices.values():
            self._whole.pop(found.device, None)
            self._shared.pop(found.device, None)
        for found in after.devices.values():
            (self._shared if found.is_shared else self._whole)[found.device] = None

    def _enter_pool(self, key: tuple[str, str], pool: Pool) -> None:
        driver, name = key
        pools = self._pools.setdefault(driver, {})
        if pool.slices:
            pools[name] = pool
        else:
            pools.pop(name, None)
        if not pools:
            del self._pools[driver]

    def _list(self, devices: Iterable[PublishedDevice], sign: int) -> None:
        for found in devices:
            enter(self._on, [found.node], found.device, sign)
            if found.node == SEVERAL:
                enter(self._selected, [found.selector], found.device, sign)
            self._listed.pop(found.node, None)


def _pool_of(slices: Sequence[PublishedSlice]) -> Pool:
    """The pool of these slices, at least one, sorted by name."""
    newest = max(found.generation for found in slices)
    now = [found for found in slices if found.generation == newest]
    devices = {each.device.name: each for found in now for each in found.devices}
    counters = dict(counter for found in now for counter in found.counters)
    return Pool(tuple(slices), devices, len(now) == now[0].slice_count, counters)


def _only_in(pool: Pool, other: Pool) -> Iterator[PublishedDevice]:
    """The devices of a pool that `other` does not have, or has for other nodes."""
    for name, found in pool.devices.items():
        same = other.devices.get(name)
        if same is None or (same.node, same.selector) != (found.node, found.selector):
            yield found
