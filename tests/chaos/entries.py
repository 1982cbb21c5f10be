"""What an entry of a Queue counts: devices of a class, or what a vendor's devices have.

Selectors are read as the trials write them, which compare one attribute with one word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.chaos.objects import Object
from tests.chaos.quantities import amount

SELECTOR = re.compile(r'device\.attributes\["(?P<of>[^"]+)"\]\.(?P<name>\w+) == "(?P<word>[^"]+)"')


@dataclass(frozen=True)
class Entry:
    """One meaning of a name in Queues.

    Attributes:
        name: What Queues and their status call it.
        device_class: Whose devices it counts; none is those of a driver.
        driver: Whose devices it counts, by whatever class; none is those of a class.
        selector: Which of them; none is all.
        capacity: What it counts of each, in place of devices.
        counter: The same, where counters are consumed.
        counter_sets: The pattern of their sets.
    """

    name: str
    device_class: str
    driver: str
    selector: str
    capacity: str
    counter: str
    counter_sets: str

    @classmethod
    def of(cls, body: Object) -> Entry:
        measure = body.get("measure") or {}
        counter = measure.get("counter") or {}
        return cls(
            name=name_of(body),
            device_class=body.get("deviceClass", ""),
            driver=body.get("driver", ""),
            selector=body.get("selector", ""),
            capacity=measure.get("capacity", ""),
            counter=counter.get("name", ""),
            counter_sets=counter.get("set", ""),
        )

    @property
    def is_class(self) -> bool:
        """Whether it counts devices of a class and nothing else, as all did once."""
        return not (self.driver or self.selector or self.capacity or self.counter)

    def counts(self, result: Object, device_class: str, device: Object) -> bool:
        """Whether it counts a device that a claim got by a class."""
        is_its = self.driver == result["driver"] if self.driver else self._is_of(device_class)
        return is_its and (not self.selector or is_selected(device, self.selector))

    def needs_device(self, result: Object) -> bool:
        """Whether the allocation alone does not say what it counts."""
        is_said = self.capacity in (result.get("consumedCapacity") or {})
        return bool(self.selector or self.counter or (self.capacity and not is_said))

    def amount_of(self, result: Object, device: Object) -> int:
        """How much of it one device, or the part of it that a claim got, is."""
        if self.counter:
            return sum(map(self._consumed, device.get("consumesCounters") or ()))
        if not self.capacity:
            return 1
        consumed = result.get("consumedCapacity") or {}
        if self.capacity in consumed:
            return amount(consumed[self.capacity])
        return amount(device.get("capacity", {}).get(self.capacity, {"value": 0})["value"])

    def _is_of(self, device_class: str) -> bool:
        return self.device_class == device_class

    def _consumed(self, counters: Object) -> int:
        if not fnmatchcase(counters["counterSet"], self.counter_sets):
            return 0
        return amount(counters["counters"].get(self.counter, {"value": 0})["value"])


def name_of(body: Object) -> str:
    """An entry without a name has that of its class."""
    return str(body.get("name") or body["deviceClass"])


def is_selected(device: Object, selector: str) -> bool:
    found = SELECTOR.fullmatch(selector)
    if not found:
        raise ValueError(f"the checker does not read {selector}")
    attributes = device.get("attributes") or {}
    value = attributes.get(found["name"]) or attributes.get(f"{found['of']}/{found['name']}") or {}
    return bool(value.get("string") == found["word"])
