"""What Queues count beside the devices of their classes, found by driver or class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.measures import Definition
from scheduler_plugin.objects.tables import Index, enter


class Definitions:
    """The definitions that any Queue has; entries of a class alone are not among them."""

    def __init__(self) -> None:
        self._listed: dict[Definition, int] = {}
        self._by_driver: Index[str, Definition] = {}
        self._by_class: Index[ResourceKey, Definition] = {}

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._listed)

    @property
    def have_counters(self) -> bool:
        """Whether any of them counts counters."""
        return any(definition.measure.counter for definition in self._listed)

    def add(self, definition: Definition, sign: int = 1) -> None:
        """Add a definition of one more Queue; with a sign of -1, remove it."""
        before = self._listed.pop(definition, 0)
        if before + sign:
            self._listed[definition] = before + sign
        if not before or not before + sign:
            enter(
                self._by_driver, [definition.driver] if definition.driver else [], definition, sign
            )
            key = ResourceKey(definition.device_class)
            enter(self._by_class, [key] if key else [], definition, sign)

    def of_driver(self, driver: str) -> Iterable[Definition]:
        """Those that count devices of a driver, whatever class they were requested by."""
        return self._by_driver.get(driver, ())

    def of_class(self, key: ResourceKey) -> Iterable[Definition]:
        """Those that count devices of a class, by the key of the class."""
        return self._by_class.get(key, ())

    def drivers(self) -> Iterable[str]:
        """The drivers whose devices are counted whatever class they were requested by."""
        return self._by_driver.keys()
