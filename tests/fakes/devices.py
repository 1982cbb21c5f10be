"""A fake of what a node's discovery knows."""

from __future__ import annotations

from collections.abc import Callable

from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.preparing.grants.device_locators import DeviceLocator
from tests.driver.builders import a_configuration
from tests.driver.slot_builders import CONFIGURATION


class FakeDevices:
    """One camera; see `node_slots.KnowsDevices`."""

    def __init__(self, camera: Instance) -> None:
        self.camera = camera
        self.inventory = Inventory({}, (), frozenset())
        self.claimed_instances: frozenset[str] = frozenset()
        self.listeners: list[Callable[[Inventory], None]] = []
        self.gone: list[Callable[[], None]] = []

    async def decided(self) -> None:
        self.decide()

    @property
    def where(self) -> DeviceLocator:
        return DeviceLocator(self.inventory.instances, self.inventory.unheard)

    def on_inventory(self, listener: Callable[[Inventory], None]) -> None:
        self.listeners.append(listener)

    def on_gone(self, listener: Callable[[], None]) -> None:
        self.gone.append(listener)

    def on_moved(self, listener: Callable[[], None]) -> None:
        self.listeners.append(lambda _: listener())

    def decide(self) -> None:
        configuration = a_configuration(CONFIGURATION, capacity=2)
        self.inventory = Inventory({CONFIGURATION: configuration}, (self.camera,), frozenset())
        for listener in self.listeners:
            listener(self.inventory)
