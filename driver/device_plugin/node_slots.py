"""Assembles the device-plugin path of one node.

Instances, discovery ──► lists ──► device plugins ──► kubelet
                               └──────────► NodeStatus ──► allocatable of the Node
kubelet ──Allocate──► KubeletAllocations ──► slots
kubelet ──pod-resources──► SlotKeeper ──► slots
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NoReturn, Protocol

from driver.api import InstanceName
from driver.derived import derived
from driver.device_plugin.containers.disk_cdi import instance_files
from driver.device_plugin.kubelet.allocations import Given, KubeletAllocations
from driver.device_plugin.kubelet.device_plugins import DevicePlugins
from driver.device_plugin.kubelet.given_devices import GivenDevices
from driver.device_plugin.kubelet.listings import list_devices
from driver.device_plugin.kubelet.usage import NodePodObjects, SlotReconciler
from driver.device_plugin.node_remaining_slots import LocatesDevices, NodePlace
from driver.device_plugin.slots.allocation import Offer, Plugin
from driver.device_plugin.slots.apiserver_node_status import NodeStatus
from driver.device_plugin.slots.apiserver_slots import SlotObjects
from driver.device_plugin.slots.apiserver_taint_rules import TaintRules
from driver.device_plugin.slots.lists import (
    PluginListing,
    PluginLists,
    healthy_devices,
    offered_by,
)
from driver.device_plugin.slots.withheld_slots import with_withheld
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.instances.slots.slots import InstanceSlots, usage_problems
from driver.names import attribute_value
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from kube.calls.api import ApiClient
from kube.events.api import Event, ObjectReference
from kube.kinds import INSTANCES
from kube.reconciling.api import Done
from kube.stores.api import Added, Change, Deleted, Modified

logger = logging.getLogger(__name__)

COALESCE_SECONDS = 0.02
"""How long a burst of changes is gathered into one list."""

RESEND_SECONDS = 60.0
"""How often unchanged lists are sent again, for a kubelet that missed one."""

RESEND_BATCHES = 240
"""Most batches in which all lists are sent again; each batch wakes this process up."""


class KnowsDevices(LocatesDevices, Protocol):
    """The devices of this node, see `node_cluster.NodeCluster`."""

    @property
    def inventory(self) -> Inventory | None: ...

    @property
    def claimed_instances(self) -> frozenset[str]:
        """Attribute values of Instances that claims may still have."""

    async def decided(self) -> None:
        """Wait until there is an inventory."""

    def on_inventory(self, listener: Callable[[Inventory], None]) -> None:
        """Call back with each new inventory."""

    def on_gone(self, listener: Callable[[], None]) -> None:
        """Call back whenever devices were removed from all slices."""


class NodeSlots:
    """Offers this node's devices through the device-plugin API."""

    def __init__(
        self,
        client: ApiClient,
        place: NodePlace,
        devices: KnowsDevices,
        record: Callable[[Event], None],
    ) -> None:
        """Create; `record` records an Event without blocking."""
        clock = asyncio.get_running_loop().time
        given = Given(clock)
        self._node = node = place.node
        self._devices = devices
        self._record = record
        self._slots = SlotObjects(client, node)
        self._pods = NodePodObjects(client, node, clock)
        files = instance_files(place.cdi_root, place.resolve)
        self._allocations = KubeletAllocations(
            self._slots, self._offer, files.write, given=given, on_refused=self._refused
        )
        self._allocations.resolve = place.resolve
        self._status = NodeStatus(client, node)
        self._plugins = DevicePlugins(
            place.kubelet_root / "device-plugins", self._allocations, follower=self._status
        )
        usage = partial(list_devices, place.kubelet_root / "pod-resources", clock)
        self._slot_reconciler = SlotReconciler(node, self._slots, self._pods, usage, given, record)
        self._given = GivenDevices(
            node,
            files,
            lambda: devices.where,
            self._slots.views,
            usage=usage,
            pods=self._pods,
            record=record,
        )
        self._lists = whole_reconciler("listing devices", self._offer_lists)
        self._taint_rules = TaintRules(client, partial(self._lists.add, ALL))
        self._listing = PluginListing(node)
        self._listed: PluginLists = {}

    @property
    def are_introduced(self) -> bool:
        """Whether the kubelet was told of all resources."""
        return self._plugins.is_introduced

    async def run(self) -> NoReturn:
        """Offer until cancelled; failures are logged and retried without a limit."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._slots.store.run())
            tasks.create_task(self._pods.store.run())
            tasks.create_task(self._taint_rules.run())
            await self._slots.store.synced.wait()
            await self._pods.store.synced.wait()
            await self._taint_rules.settled.wait()
            await self._devices.decided()
            self._slots.store.subscribe(self._instance_changed)
            self._pods.store.subscribe(self._slot_reconciler.pod_changed)
            self._devices.on_inventory(lambda _: self._lists.add(ALL))
            self._devices.on_gone(partial(self._lists.add, ALL))
            self._devices.on_moved(partial(self._given.files_queue.add, ALL))
            for runs in (self._plugins, self._slot_reconciler, self._given):
                tasks.create_task(runs.run())
            for offers in (self._lists, self._status):
                tasks.create_task(offers.run())
            tasks.create_task(self._resend())
        raise AssertionError("devices are offered until that is cancelled")

    def _views(self) -> Mapping[InstanceName, InstanceSlots]:
        """All Instances; slots that claims may have, or that are tainted, are not given."""
        views = with_withheld(self._slots.views(), self._taint_rules.rules, self._node)
        claimed = self._devices.claimed_instances
        if not claimed:
            return views
        return {
            name: replace(view, claimable=True) if attribute_value(name) in claimed else view
            for name, view in views.items()
        }

    def views(self) -> Iterable[InstanceSlots]:
        """The Instances that concern this node; empty before they are known."""
        return self._slots.views().values()

    def _offer(self) -> Offer:
        instances = derived(self._inventory(), _by_name)
        return Offer(node=self._node, slots=self._views(), instances=instances)

    def _inventory(self) -> Inventory:
        inventory = self._devices.inventory
        assert inventory is not None, "waited for"
        return inventory

    def _instance_changed(self, change: Change[InstanceSlots]) -> None:
        self._lists.add(ALL)
        self._given.files_queue.add_after(ALL, COALESCE_SECONDS)
        self._slot_reconciler.instance_changed(change)
        if not isinstance(change, Deleted):
            self._report_problems(change)

    async def _offer_lists(self) -> Done:
        await asyncio.sleep(COALESCE_SECONDS)
        self._offer_now(self._views())
        return Done()

    def _offer_now(self, views: Mapping[InstanceName, InstanceSlots]) -> None:
        offered = derived(self._inventory(), offered_by)
        lists = self._listing.lists(views.values(), offered)
        if lists is not self._listed:
            self._listed = lists
            self._plugins.offer(lists)

    async def _refused(self, plugin: Plugin) -> None:
        """Send the list and the Node's allocatable again after a refused Allocate.

        The kubelet and kube-scheduler chose by a stale list. The replacement of the pod must not be
        scheduled to this node for the same reason.
        """
        self._offer_now(self._views())
        self._plugins.resend(plugin)
        if plugin in self._listed:
            await self._status.says(str(plugin), healthy_devices(self._listed[plugin]))

    async def _resend(self) -> NoReturn:
        """Send unchanged lists again in batches: the kubelet writes its checkpoint for each."""
        while True:
            plugins = tuple(self._listed)
            batches = min(RESEND_BATCHES, len(plugins)) or 1
            for batch in range(batches):
                for plugin in plugins[batch::batches]:
                    self._plugins.resend(plugin)
                await asyncio.sleep(RESEND_SECONDS / batches)

    def _report_problems(self, change: Added[InstanceSlots] | Modified[InstanceSlots]) -> None:
        """Record Events about problems of `deviceUsage`, on the first node that sees the device."""
        slots = change.new
        if min(slots.nodes, default="") != self._node:
            return
        before = usage_problems(change.old, self._node) if isinstance(change, Modified) else ()
        for problem in usage_problems(slots, self._node):
            if problem not in before:
                logger.warning("odd deviceUsage instance=%s: %s", slots.name, problem)
                instance = ObjectReference.of(INSTANCES, "Instance", slots)
                self._record(Event.warning(instance, "OddDeviceUsage", "Read", problem))


def _by_name(inventory: Inventory) -> Mapping[InstanceName, Instance]:
    return {instance.name: instance for instance in inventory.instances}
