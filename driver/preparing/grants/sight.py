"""What a node sees of its devices at one moment: what it can prepare, and where things are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from driver.instances.instances import Instance
from driver.names import is_pool_of
from driver.preparing.files.prepared import AllocatedDevice
from driver.preparing.grants.claims import Instances
from driver.preparing.grants.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of the devices of this node at one moment.

    Attributes:
        instances: What can be prepared, by pool and device, offline ones included.
        where: Where devices are that were prepared before.
    """

    instances: Instances
    where: Whereabouts

    def instance(self, allocated: AllocatedDevice) -> Instance | None:
        """What a claim has; its device may have had another pool when it was allocated."""
        found = self.instances.get((allocated.pool, allocated.device))
        return found or next(
            (
                instance
                for (pool, device), instance in self.instances.items()
                if device == allocated.device and is_pool_of(allocated.pool, pool)
            ),
            None,
        )


class InstanceSource(Protocol):
    """The devices of this node."""

    @property
    def sight(self) -> Sight | None:
        """What is known now; None until the first discovery is over."""

    async def decided(self) -> None:
        """Wait until the first discovery is over."""

    def on_changed(self, listener: Callable[[], None]) -> None:
        """Call back whenever there may be another sight."""
