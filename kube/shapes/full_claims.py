"""The fields of a ResourceClaim by which drivers prepare it, and say what they did.

They are too much for a watch of all claims, see `claims`.
"""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from collections.abc import Sequence
from typing import Any

import msgspec

from kube.shapes.claims import Allocation, Claim, Devices, Results, Spec, Status
from kube.shapes.metadata import NO_METADATA


class Opaque(msgspec.Struct, frozen=True):
    """What a driver is told, in its own words."""

    driver: str | None = None
    parameters: Any = None


class Config(msgspec.Struct, frozen=True):
    """An entry of `config`, of a spec or of an allocation, where it says its source."""

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
    """An entry of `status.devices`: what a driver says of a device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    data: Any = None
    network_data: Any = None


class FullStatus(Status, frozen=True, rename="camel"):
    """Of `status`."""

    allocation: FullAllocation | None = None
    devices: list[DeviceStatus] | None = None


class FullClaim(Claim, frozen=True):
    """A ResourceClaim with what drivers are told and say."""

    spec: FullSpec | None = None
    status: FullStatus | None = None

    @property
    def uid(self) -> str:
        return (self.metadata or NO_METADATA).uid or ""

    @property
    def configs(self) -> Sequence[Config]:
        """Those of its allocation."""
        allocation = self.status.allocation if self.status is not None else None
        devices = allocation.devices if allocation is not None else None
        return (devices.config if devices is not None else None) or ()
