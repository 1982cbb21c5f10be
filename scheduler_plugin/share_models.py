"""An entry of a Queue's `spec.resources` as a model: what it counts, its quota and its limit.

The definition of the Queue checks the same by CEL, in the rules here; see `models`.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from kube.models import (
    OBJECT_NAME,
    OBJECT_NAME_OR_NONE,
    CompleteModel,
    extensions,
    flaw,
    rule,
)
from kube.shapes.quantities import thousandths

NO_CEILING = -1
LARGEST = 2**63 - 1

LONGEST_SELECTOR = 10 * 1024
"""The maximum length of a CEL expression, as for those of DeviceClasses."""


def _number_or_quantity(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise flaw("Input should be a whole number or a quantity.")
    return value


_CEILING = r"^(-1|\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2}|[KMGTPE]i|[kMGTPEmun])?)$"
"""What texts `kube.shapes.quantities` reads, and -1."""

Amount = Annotated[
    int | str,
    PlainValidator(_number_or_quantity),
    WithJsonSchema(extensions(int_or_string=True)),
]
"""Devices as a whole number, or an amount of a measure as a quantity."""

Ceiling = Annotated[
    int | str,
    PlainValidator(_number_or_quantity),
    WithJsonSchema(
        {**extensions(int_or_string=True), "minimum": -1, "maxLength": 40, "pattern": _CEILING}
    ),
]
"""Devices as a whole number, or an amount of a measure as a quantity such as 40Gi."""


class CounterMeasure(CompleteModel):
    """Counters that a device consumes while it is in use, as its slice says."""

    set: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9*]([-a-z0-9*.]*)$")]
    """The name of the counter set, in which * stands for any text."""
    name: Annotated[str, Field(min_length=1, max_length=63)]
    """The name of the counter."""


class Measure(CompleteModel):
    """What is counted of each device."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("capacity", "counter")

    capacity: Annotated[str, Field(min_length=1, max_length=96)] | None = None
    """The name of a capacity. Where several claims share a device, what the claim consumes of it
    counts, else all that the device has."""
    counter: CounterMeasure | None = None
    """A counter of the devices' counter sets."""


_NO_DEVICES = "must be a whole number of devices, or -1; only a measure has quantities"
_COVERS = (
    "type(self.quota) != int || type(self.limit) != int || int(self.limit) == -1"
    " || int(self.quota) <= int(self.limit)"
)
"""Kubernetes 1.33 counts the comparison of numbers or texts as dear: it knows no maximum length of
them. Where a quantity is a text, the webhook compares."""


class Share(CompleteModel):
    """Quota and limit of what an entry counts: devices, or a measure of them."""

    model_config = ConfigDict(
        json_schema_extra=extensions(
            validations=[
                rule(
                    "has(self.driver) == (self.deviceClass == '')",
                    "exactly one of deviceClass and driver must be given",
                    ".deviceClass",
                ),
                rule(
                    "!has(self.driver) || self.name != ''", "a driver's entry needs a name", ".name"
                ),
                rule("has(self.measure) || type(self.quota) == int", _NO_DEVICES, ".quota"),
                rule("has(self.measure) || type(self.limit) == int", _NO_DEVICES, ".limit"),
                rule(
                    _COVERS,
                    "the limit must be -1 (unlimited), or at least the quota"
                    " (a quota of -1 is the limit)",
                    ".limit",
                ),
            ]
        )
    )
    name: Annotated[str, Field(max_length=253, pattern=OBJECT_NAME_OR_NONE)] = ""
    """The name of the entry, by which status has it. Empty, it is that of the class. An entry of
    this name in another queue of the tree counts the same."""
    device_class: Annotated[str, Field(max_length=253, pattern=OBJECT_NAME_OR_NONE)] = ""
    """The name of the DeviceClass, or of the Configuration, whose devices it counts."""
    driver: Annotated[str, Field(min_length=1, max_length=63, pattern=OBJECT_NAME)] | None = None
    """The driver whose devices it counts, whatever class they were requested by; instead of
    deviceClass."""
    selector: Annotated[str, Field(min_length=1, max_length=LONGEST_SELECTOR)] | None = None
    """A CEL expression that selects devices among them, as in a DeviceClass."""
    measure: Measure | None = None
    """What is counted of each device. Absent, each device counts as one."""
    quota: Ceiling = 0
    """What is guaranteed, and the ceiling of use by pods that are not preemptible. -1 stands for
    the limit."""
    limit: Ceiling = -1
    """The ceiling of all use. -1 is unlimited."""
    over_quota_weight: (
        Annotated[int, Field(ge=0, le=1_000_000, json_schema_extra={"format": "int32"})] | None
    ) = None
    """The queue's weight among its siblings for devices beyond all quotas: with 2 it gets twice as
    much as with 1. With 0 it never exceeds its quota. Absent, it is 1."""

    @property
    def shown_name(self) -> str:
        return self.name or self.device_class

    @model_validator(mode="after")
    def _counts_something(self) -> Self:
        if (self.driver is None) == (not self.device_class):
            raise flaw("Exactly one of deviceClass and driver must be given.", ".deviceClass")
        if not self.shown_name:
            raise flaw("A driver's entry needs a name.", ".name")
        return self

    @model_validator(mode="after")
    def _has_ceilings(self) -> Self:
        quota, limit = self._amount("quota"), self._amount("limit")
        if limit != NO_CEILING and quota > limit:
            raise flaw(f"The limit {self.limit} is below the quota {self.quota}.", ".limit")
        return self

    def _amount(self, field: str) -> int:
        """A ceiling in devices, or in thousandths of a measure's unit; -1 for none."""
        value: int | str = getattr(self, field)
        if self.measure is None and isinstance(value, str):
            raise flaw(f"The value {_NO_DEVICES}.", f".{field}")
        if str(value) == str(NO_CEILING):
            return NO_CEILING
        return _quantity(value, f".{field}")


def _quantity(value: int | str, at: str) -> int:
    found = thousandths(value)
    if found is None or found > 1000 * LARGEST:
        raise flaw("Must be a quantity of at least 0 that fits into 64 bits, or -1.", at)
    return found
