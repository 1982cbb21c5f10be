"""What a node can prepare, and where its devices are: made when asked for, of what was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from driver.api import DeviceName
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.instances.node_instances import NodeInstances
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.device_views import DevicesView
from driver.publishing.apiserver_path import TakenPath
from driver.publishing.shown.publication import Publication
from driver.publishing.shown.shared_pools import shared_devices
from driver.publishing.shown.slices import device_names


@dataclass(slots=True)
class NodeSight:
    """What is kept between passes; losing it costs writes, never a device.

    Attributes:
        instances: This node's, and all shared ones.
        inventory_now: What discovery says at this moment. It may be ahead of the inventory, since
            no pass and no API server is waited for.
        publications: What was decided last, by pool; what the kubelet plugin prepares from.
        inventory: What it was decided from; None before the first pass.
        taken: How devices are offered; None before that is known.
        listeners: Hear that there may be another sight; they return at once.
    """

    instances: NodeInstances
    inventory_now: Callable[[], Inventory]
    publications: Callable[[], Mapping[str, Publication]]
    inventory: Inventory | None = None
    taken: TakenPath | None = None
    listeners: list[Callable[[], None]] = field(default_factory=list)
    # None if that is to be found out, or made, anew.
    _shared: Mapping[tuple[str, DeviceName], Instance] | None = None
    _where: DeviceLocator | None = None
    _sight: DevicesView | None = None

    @property
    def path(self) -> TakenPath:
        """How devices are offered."""
        assert self.taken is not None, "taken before anything is read"
        return self.taken

    def decided(self, inventory: Inventory, *, is_current: bool = True) -> None:
        """A pass decides from this; `is_current` says whether discovery says it still."""
        self.inventory = inventory
        self._where = None
        if is_current:
            self._where = DeviceLocator(inventory.instances, inventory.unheard, inventory.rules)
        self.forget_shared()

    def forget_shared(self) -> None:
        """Shared Instances may be others."""
        self._shared = None
        self._forget()

    def forget_where(self) -> None:
        """Devices may be elsewhere."""
        self._where = None
        self._forget()

    def _forget(self) -> None:
        self._sight = None
        for listener in self.listeners:
            listener()

    @property
    def whole(self) -> DevicesView | None:
        """What this node can prepare, and where its devices are; None before the first decision."""
        where = self.where
        if where is None:
            return None
        if self._sight is None:
            self._sight = DevicesView(self._instances_to_prepare(), where)
        return self._sight

    @property
    def where(self) -> DeviceLocator | None:
        """Where this node's devices are; None before the first decision."""
        if self._where is None and self.inventory is not None:
            inventory = self.inventory_now()
            self._where = DeviceLocator(inventory.instances, inventory.unheard, inventory.rules)
        return self._where

    def _instances_to_prepare(self) -> Mapping[tuple[str, DeviceName], Instance]:
        local = self._withdrawn_devices() if not self.path.is_dra else {}
        published: dict[tuple[str, DeviceName], Instance] = {
            (pool, name): offer.instance or local[name]
            for pool, publication in self.publications().items()
            for name, offer in publication.offers.items()
            if offer.instance is not None or name in local
        }
        return {**published, **self._shared_devices()}

    def _withdrawn_devices(self) -> Mapping[DeviceName, Instance]:
        """What claims got before this path was taken, and are to be prepared with all the same."""
        inventory, features = self.inventory, self.path.features
        return device_names(inventory.local, features) if inventory and features else {}

    def _shared_devices(self) -> Mapping[tuple[str, DeviceName], Instance]:
        if self.inventory is None or self.path.features is None:
            return {}
        if self._shared is None:
            stored = (s for s in self.instances.store if s.is_shared)
            self._shared = shared_devices(self.inventory, stored, self.path.features)
        return self._shared
