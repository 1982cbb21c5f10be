"""What a node sees of its devices at one moment: what it can prepare, and where things are."""

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
    """What is known of the devices of this node at one moment.

    Attributes:
        instances: What can be prepared, by pool and device, offline ones included.
        where: Where devices are that were prepared before.
    """

    instances: Instances
    where: DeviceLocator

    def instance(self, allocated: AllocatedDevice) -> Instance | None:
        """What a claim has; its device may have had another pool when it was allocated."""
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
        """Of each device, so that a thousand claims are not looked for among a thousand devices."""
        found: dict[DeviceName, list[str]] = {}
        for pool, device in self.instances:
            found.setdefault(device, []).append(pool)
        return found


class InstanceSource(Protocol):
    """The devices of this node."""

    @property
    def sight(self) -> DevicesView | None:
        """What is known now; None until the first discovery is over."""

    async def decided(self) -> None:
        """Wait until the first discovery is over."""

    def on_changed(self, listener: Callable[[], None]) -> None:
        """Call back whenever there may be another sight."""
