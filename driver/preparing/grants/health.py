"""Health: the health of prepared devices, for the kubelet.

    prepared claims, DevicesView ──health_problems──► why a device is unhealthy, for each device

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


def health_problems(
    claims: Iterable[PreparedClaim], view: DevicesView
) -> Mapping[tuple[str, DeviceName], str]:
    """Why each device is unhealthy, sorted by pool and name; "" for a healthy one."""
    devices = {
        (device.allocated.pool, device.allocated.device): device
        for claim in claims
        for device in claim.devices
    }
    return {key: problem_of(devices[key], view) for key in sorted(devices)}


def problem_of(device: PreparedDevice, view: DevicesView) -> str:
    """Why a prepared device is unhealthy; "" for a healthy one, or while that is unknown.

    A device may be reported and not be published yet: a driver that starts decides that later.
    """
    instance = view.instance(device.allocated) or view.where.find(device)
    if instance is None:
        return "" if is_unknown(device, view) else OFFLINE
    if not instance.online:
        return OFFLINE
    return instance.degraded.message if instance.degraded else ""


def is_unknown(device: PreparedDevice, view: DevicesView) -> bool:
    """Whether it is unknown whether a device is absent, since no handler has answered."""
    is_unheard = view.where.is_unheard(device.configuration) and not device.withheld
    return is_unheard and view.instance(device.allocated) is None and not view.where.find(device)
