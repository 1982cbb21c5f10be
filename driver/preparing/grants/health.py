"""Health: what the kubelet is told of the devices that its pods hold.

    prepared claims, DevicesView ──troubles──► of each device why it is not well

Nobody else's health is told: the kubelet puts it into the status of pods, and asks of a node with a
thousand devices what a few of them have. What is prepared is on the disk, so a driver that starts
again tells of a device that went away meanwhile, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from driver.api import DeviceName
from driver.preparing.files.prepared import PreparedClaim, PreparedDevice
from driver.preparing.grants.device_views import DevicesView

OFFLINE = "the device is offline"


def troubles(
    claims: Iterable[PreparedClaim], sight: DevicesView
) -> Mapping[tuple[str, DeviceName], str]:
    """By pool and device, sorted, why it is not well; "" for one that is."""
    devices = {
        (device.allocated.pool, device.allocated.device): device
        for claim in claims
        for device in claim.devices
    }
    return {key: _trouble(devices[key], sight) for key in sorted(devices)}


def _trouble(device: PreparedDevice, sight: DevicesView) -> str:
    instance = sight.instance(device.allocated)
    if instance is None:
        return _of_unseen(device, sight)
    if not instance.online:
        return OFFLINE
    return instance.degraded.message if instance.degraded else ""


def _of_unseen(device: PreparedDevice, sight: DevicesView) -> str:
    """Of one that only its record tells of: not heard is not gone."""
    if sight.where.is_unheard(device.configuration) and not device.withheld:
        return ""
    return OFFLINE
