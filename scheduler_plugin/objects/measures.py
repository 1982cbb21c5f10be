"""What an entry of a Queue counts: whole devices, or a quantity that devices have.

    deviceClass, or driver      which devices
    selector                    which of them, as CEL
    measure                     how much each one costs: 1, a capacity, or counters

An entry of a class alone has the name of the class as its key, as Queues always had. Any other key
is made of the entry's name and of a digest of what it counts. So two trees of queues that define a
name alike have one key, and two that define it otherwise have two, which never meet: no table of
definitions has to be kept in step.

Amounts of a measure are thousandths of its unit, rounded up, so that they stay whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from kube.shapes.quantities import PER_UNIT, quantity_text
from scheduler_plugin.objects.amounts import Ceiling, ResourceKey, for_status

_MARK, _WHOLE, _MEASURED = "\0", "d", "m"


@dataclass(frozen=True, slots=True)
class Measure:
    """How much a device costs; without a capacity and a counter it is 1 for each allocation.

    Attributes:
        capacity: Name of a capacity of the device.
        counter_set: Pattern of the names of counter sets, in which `*` stands for any text.
        counter: Name of a counter of these sets.
    """

    capacity: str = ""
    counter_set: str = ""
    counter: str = ""

    @property
    def is_of_devices(self) -> bool:
        return not (self.capacity or self.counter)

    def __str__(self) -> str:
        if self.counter:
            return f"counter {self.counter} of {self.counter_set}"
        return f"capacity {self.capacity}" if self.capacity else "devices"


DEVICES = Measure()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What an entry of a Queue counts.

    Attributes:
        name: By which Queues and their status have it.
        device_class: The DeviceClass or Configuration whose devices it counts; "" for any class.
        driver: The driver whose devices it counts; "" where the class decides.
        selector: CEL that a device must satisfy in addition; "" for none.
    """

    name: str
    device_class: str = ""
    driver: str = ""
    selector: str = ""
    measure: Measure = DEVICES

    @property
    def is_class(self) -> bool:
        """Whether it counts the devices of the class that it is named after."""
        return self == Definition(name=self.name, device_class=self.name)

    @property
    def key(self) -> ResourceKey:
        if self.is_class:
            return ResourceKey(self.name)
        unit = _WHOLE if self.measure.is_of_devices else _MEASURED
        counted = _MARK.join((self.device_class, self.driver, self.selector, str(self.measure)))
        return ResourceKey(
            MeasuredKey(f"{self.name}{_MARK}{unit}{sha256(counted.encode()).hexdigest()[:16]}")
        )

    @property
    def selectors(self) -> tuple[tuple[str, ...], ...]:
        """The selector as a group of expressions; () for none."""
        return ((self.selector,),) if self.selector else ()

    def __str__(self) -> str:
        whose = f"of DeviceClass {self.device_class}" if self.device_class else ""
        by = f"of driver {self.driver}" if self.driver else ""
        selected = f"that {self.selector!r} selects" if self.selector else ""
        return " ".join(filter(None, (str(self.measure), whose, by, selected)))


class MeasuredKey(str):
    """The key of an entry that is no class alone; as text it is the entry's name."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.partition(_MARK)[0]

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def is_class(key: ResourceKey) -> bool:
    """Whether it is the key of a class, which a queue that does not list it has no quota of."""
    return _MARK not in key


def is_measured(key: ResourceKey) -> bool:
    """Whether amounts of the key are thousandths of a unit, and not whole devices."""
    return key.partition(_MARK)[2].startswith(_MEASURED)


def amount_text(key: ResourceKey, amount: int) -> str:
    """An amount for people: `3` devices, or a quantity such as `40Gi`."""
    return quantity_text(amount) if is_measured(key) else str(amount)


def ceiling_text(key: ResourceKey, ceiling: Ceiling) -> str:
    """A ceiling for people; `none` if it is unlimited."""
    return str(ceiling) if ceiling.most is None else amount_text(key, ceiling.most)


def amount_value(key: ResourceKey, amount: int) -> int | str:
    """An amount for programs: a number of devices, or a quantity such as `40Gi`."""
    return quantity_text(amount) if is_measured(key) else for_status(amount)


def amount_number(key: ResourceKey, amount: int) -> int | float:
    """An amount to calculate or draw with: in devices, or in the unit of the measure."""
    return amount / PER_UNIT if is_measured(key) else amount


def charges_text(charges: Iterable[tuple[ResourceKey, int]]) -> str:
    """Amounts with their names for people, such as `1 gpu.example.com, 40Gi gpu-memory`."""
    return ", ".join(f"{amount_text(key, amount)} {key}" for key, amount in charges)
