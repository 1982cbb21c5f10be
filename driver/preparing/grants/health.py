"""Health: the health of prepared devices, for the kubelet.

    prepared claims, DevicesView ──troubles──► why a device is unhealthy, for each device

Only prepared devices are reported: the kubelet puts their health into the status of pods, and pods
use few of a node's thousand devices. Prepared claims are on disk, so a driver that restarts also
reports a device that is absent since.
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
    """Why each device is unhealthy, sorted by pool and name; "" for a healthy one."""
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
    """The trouble of a device without Instance; "" while it is unknown whether it is absent."""
    if sight.where.is_unheard(device.configuration) and not device.withheld:
        return ""
    return OFFLINE
