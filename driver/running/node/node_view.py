"""The devices that a node can prepare, and their locations, computed when they are first read."""

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
from driver.publishing.desired.publication import Publication
from driver.publishing.desired.shared_pools import shared_devices
from driver.publishing.desired.slices import device_names


@dataclass(slots=True)
class NodeView:
    """State between reconciliations; losing it costs writes, never a device.

    Attributes:
        instances: This node's Instances, and all shared ones.
        inventory_now: Returns the inventory of this moment. It may be newer than `inventory`, since
            it does not wait for a reconciliation or for the API server.
        publications: Returns the last publication of each pool. Claims are prepared from them.
        inventory: The last inventory; None before the first one.
        taken: How devices are offered; None before that is known.
        listeners: Called when the view may have changed; they must not block.
    """

    instances: NodeInstances
    inventory_now: Callable[[], Inventory]
    publications: Callable[[], Mapping[str, Publication]]
    inventory: Inventory | None = None
    taken: TakenPath | None = None
    listeners: list[Callable[[], None]] = field(default_factory=list)
    # Caches; None if they must be computed again.
    _shared: Mapping[tuple[str, DeviceName], Instance] | None = None
    _where: DeviceLocator | None = None
    _view: DevicesView | None = None

    @property
    def path(self) -> TakenPath:
        """How devices are offered."""
        assert self.taken is not None, "taken before anything is read"
        return self.taken

    def decided(self, inventory: Inventory, *, is_current: bool = True) -> None:
        """Take a new inventory; `is_current` says whether discovery still reports the same."""
        self.inventory = inventory
        self._where = None
        if is_current:
            self._where = DeviceLocator(inventory.instances, inventory.unheard, inventory.rules)
        self.forget_shared()

    def forget_shared(self) -> None:
        """Compute again, since shared Instances may have changed."""
        self._shared = None
        self._forget()

    def forget_where(self) -> None:
        """Compute again, since locations of devices may have changed."""
        self._where = None
        self._forget()

    def _forget(self) -> None:
        self._view = None
        for listener in self.listeners:
            listener()

    @property
    def whole(self) -> DevicesView | None:
        """The devices that this node can prepare; None before the first decision."""
        where = self.where
        if where is None:
            return None
        if self._view is None:
            self._view = DevicesView(self._instances_to_prepare(), where)
        return self._view

    @property
    def where(self) -> DeviceLocator | None:
        """The locations of this node's devices; None before the first decision."""
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
        """Local devices under the names of DRA, for claims from before the path changed."""
        inventory, features = self.inventory, self.path.features
        return device_names(inventory.local, features) if inventory and features else {}

    def _shared_devices(self) -> Mapping[tuple[str, DeviceName], Instance]:
        if self.inventory is None or self.path.features is None:
            return {}
        if self._shared is None:
            stored = (s for s in self.instances.store if s.is_shared)
            self._shared = shared_devices(self.inventory, stored, self.path.features)
        return self._shared
