"""A node's view of its devices at one moment: which it can prepare, and their locations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from driver.api import DeviceName
from driver.instances.instances import Instance
from driver.names import is_pool_of
from driver.preparing.files.prepared import AllocatedDevice
from driver.preparing.grants.claims import Instances
from driver.preparing.grants.device_locators import DeviceLocator


@dataclass(frozen=True)
class DevicesView:
    """The known devices of this node at one moment.

    Attributes:
        instances: The devices that can be prepared, by pool and name, offline ones included.
        where: The current locations of devices that were prepared before.
    """

    instances: Instances
    where: DeviceLocator

    def instance(self, allocated: AllocatedDevice) -> Instance | None:
        """The Instance of an allocated device; its pool may have changed since."""
        found = self.instances.get((allocated.pool, allocated.device))
        return found or next(
            (
                self.instances[pool, allocated.device]
                for pool in self._pools.get(allocated.device, ())
                if is_pool_of(allocated.pool, pool)
            ),
            None,
        )

    @cached_property
    def _pools(self) -> Mapping[DeviceName, list[str]]:
        """The pools of each device, so that a lookup does not search all devices."""
        found: dict[DeviceName, list[str]] = {}
        for pool, device in self.instances:
            found.setdefault(device, []).append(pool)
        return found


class InstanceSource(Protocol):
    """The devices of this node."""

    @property
    def view(self) -> DevicesView | None:
        """The current view; None until the first discovery has ended."""

    async def decided(self) -> None:
        """Wait until the first discovery has ended."""

    def on_changed(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the view may have changed."""
