"""Remaining slots of the device plugin on a node that offers its devices through DRA.

A pod that was started through the device plugin keeps its slots until it ends, also after the node
has moved to DRA. The kubelet still lists its devices without a plugin and after a restart, so the
same `SlotReconciler` releases its slots. `publication` deducts them until then.

Meanwhile device plugins without devices are registered, so that containers that request these
resources can start: see `kubelet.empty_plugins`.

The kubelet is asked at least once after a start: it may list a device whose slot was released while
this driver did not run, for example by the shared driver for a node that seemed lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

from driver.api import NodeName
from driver.device_plugin.containers.disk_cdi import instance_files
from driver.device_plugin.kubelet.allocations import Given
from driver.device_plugin.kubelet.given_devices import GivenDevices
from driver.device_plugin.kubelet.listings import list_devices
from driver.device_plugin.kubelet.usage import NodePodObjects, SlotReconciler
from driver.device_plugin.slots.apiserver_slots import SlotObjects
from driver.instances.slots.node_pods import Listing, uncovered
from driver.instances.stored.objects import StoredInstance
from driver.plumbing.apiserver_reconcilers import ALL
from driver.plumbing.disk import real_path
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.renewals import Resolve
from driver.publishing.desired.deductions import holds_slots
from kube.calls.api import ApiClient
from kube.events.api import Event
from kube.stores.api import Store

PAUSE_SECONDS = 1.0
"""Pause until all watches have caught up with the release of the last slot."""


@dataclass(frozen=True, slots=True)
class NodePlace:
    """The node and its folders.

    Attributes:
        kubelet_root: The kubelet's `--root-dir`, by the path that the kubelet itself uses.
        cdi_root: The folder where the container runtime looks for dynamic CDI files.
        resolve: Resolves the links of a path of the host.
    """

    node: NodeName
    kubelet_root: Path
    cdi_root: Path
    resolve: Resolve = real_path


class LocatesDevices(Protocol):
    """Locations of this node's devices, see `node_cluster.NodeCluster`."""

    @property
    def where(self) -> DeviceLocator | None:
        """The current locations of the devices; None before they are known."""

    def on_moved(self, listener: Callable[[], None]) -> None:
        """Call back whenever locations of devices may have changed."""


async def release_remaining_slots(
    client: ApiClient,
    place: NodePlace,
    stored: Store[StoredInstance],
    record: Callable[[Event], None],
    devices: LocatesDevices,
) -> NoReturn:
    """Release slots whose pods end, at the start and whenever slots are held, until cancelled.

    Args:
        client: Client of the API server.
        place: The node and its folders.
        stored: Store of all Instances of which this node may hold slots; in sync, and running.
        record: Records an Event, without blocking.
        devices: Locations of the devices that containers still have.
    """
    changed = asyncio.Event()
    stored.subscribe(lambda _: changed.set())
    remaining: _RemainingSlots | None = None

    def look_for_devices() -> None:
        if remaining is not None:
            remaining.given.files_queue.add(ALL)

    devices.on_moved(look_for_devices)
    while True:
        remaining = _RemainingSlots(client, place, record, devices)
        await remaining.free()
        remaining = None
        await asyncio.sleep(PAUSE_SECONDS)
        while not holds_slots(stored, place.node):
            changed.clear()
            await changed.wait()


class _RemainingSlots:
    """One run: until neither the kubelet's listing nor any Instance shows a slot in use."""

    def __init__(
        self,
        client: ApiClient,
        place: NodePlace,
        record: Callable[[Event], None],
        devices: LocatesDevices,
    ) -> None:
        clock = asyncio.get_running_loop().time
        self._node = place.node
        self._slots = SlotObjects(client, place.node)
        self._pods = NodePodObjects(client, place.node, clock)
        self._usage = partial(list_devices, place.kubelet_root / "pod-resources", clock)
        self._listing: Listing | None = None
        self._over, self._looked = asyncio.Event(), asyncio.Event()
        self._kubelet_root = place.kubelet_root
        self._slot_reconciler = SlotReconciler(
            place.node, self._slots, self._pods, self._listed, Given(clock), record
        )
        self.given = GivenDevices(
            place.node,
            instance_files(place.cdi_root, place.resolve),
            lambda: devices.where,
            self._slots.views,
            usage=self._usage,
            pods=self._pods,
            record=record,
        )

    async def free(self) -> None:
        """Return when no slot of the device plugin is in use."""
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self._slots.store.run()),
                tasks.create_task(self._pods.store.run()),
            ]
            await self._slots.store.synced.wait()
            await self._pods.store.synced.wait()
            self._slots.store.subscribe(self._slot_reconciler.instance_changed)
            self._slots.store.subscribe(self._look)
            self._pods.store.subscribe(self._slot_reconciler.pod_changed)
            running.append(tasks.create_task(self._slot_reconciler.run()))
            running.append(tasks.create_task(self.given.run()))
            running.append(tasks.create_task(self._keep_resources()))
            await self._over.wait()
            for task in running:
                task.cancel()

    async def _listed(self) -> Listing | None:
        self._listing = await self._usage()
        self._look()
        return self._listing

    async def _keep_resources(self) -> NoReturn:
        """Register plugins without devices for as long as the kubelet needs them."""
        while not self._holds():
            await self._next_look()
        # Imported late: the gRPC stubs take memory that most nodes do not need.
        from driver.device_plugin.kubelet.device_plugins import DevicePlugins
        from driver.device_plugin.kubelet.empty_plugins import NothingToGive, plugins_in_use

        plugins = DevicePlugins(self._kubelet_root / "device-plugins", NothingToGive())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(plugins.run())
            while True:
                in_use = plugins_in_use(self._slots.views().values(), self._node)
                plugins.offer(dict.fromkeys(in_use, ()))
                await self._next_look()

    async def _next_look(self) -> None:
        self._looked.clear()
        await self._looked.wait()

    def _holds(self) -> bool:
        return any(view.held_by(self._node) for view in self._slots.views().values())

    def _look(self, _: Any = None) -> None:
        """End the run if the last listing shows no slot in use; otherwise another one follows."""
        self._looked.set()
        if self._listing is not None and not self._is_in_use(self._listing):
            self._over.set()

    def _is_in_use(self, listing: Listing) -> bool:
        """Whether a slot is in use or may be: after its restart the kubelet may list no pod."""
        unlisted = uncovered(self._pods.known().pods, listing)
        return bool(listing.devices or unlisted) or self._holds()
