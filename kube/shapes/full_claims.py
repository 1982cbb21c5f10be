"""Shapes of a ResourceClaim with the fields that drivers need to prepare it, and write.

They are too large for a watch of all claims, see `claims`.
"""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from collections.abc import Sequence
from typing import Any

import msgspec

from kube.shapes.claims import Allocation, Claim, Devices, Results, Spec, Status
from kube.shapes.metadata import NO_METADATA, Condition


class Opaque(msgspec.Struct, frozen=True):
    """`opaque`: parameters of a driver."""

    driver: str | None = None
    parameters: Any = None


class Config(msgspec.Struct, frozen=True):
    """An entry of `config` of a spec, or of an allocation, which also has `source`."""

    source: str | None = None
    requests: list[str] | None = None
    opaque: Opaque | None = None


class FullDevices(Devices, frozen=True):
    """Of `spec.devices`."""

    config: list[Config] | None = None


class FullSpec(Spec, frozen=True):
    """Of `spec`."""

    devices: FullDevices | None = None


class FullResults(Results, frozen=True):
    """Of `status.allocation.devices`."""

    config: list[Config] | None = None


class FullAllocation(Allocation, frozen=True, rename="camel"):
    """Of `status.allocation`."""

    devices: FullResults | None = None


class DeviceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `status.devices`, which a driver writes."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    data: Any = None
    network_data: Any = None
    conditions: list[Condition] | None = None


class FullStatus(Status, frozen=True, rename="camel"):
    """Of `status`."""

    allocation: FullAllocation | None = None
    devices: list[DeviceStatus] | None = None


class FullClaim(Claim, frozen=True):
    """A ResourceClaim with the parameters and the status of drivers."""

    spec: FullSpec | None = None
    status: FullStatus | None = None

    @property
    def uid(self) -> str:
        return (self.metadata or NO_METADATA).uid or ""

    @property
    def configs(self) -> Sequence[Config]:
        """`config` of the allocation."""
        allocation = self.status.allocation if self.status is not None else None
        devices = allocation.devices if allocation is not None else None
        return (devices.config if devices is not None else None) or ()
