"""The two contracts of the kubelet by which devices can be offered, and the choice of one.

A device is never offered by both, since each would give away what the other has given already.
"""

from __future__ import annotations

from enum import StrEnum


class OfferPath(StrEnum):
    """A value of `--path`."""

    AUTO = "auto"
    DRA = "dra"
    DEVICE_PLUGIN = "device-plugin"


def taken_path(
    wanted: OfferPath, *, slices_are_served: bool, extended_resources: bool
) -> OfferPath:
    """The path that a node takes.

    Args:
        wanted: The setting.
        slices_are_served: Whether the API server serves ResourceSlices.
        extended_resources: Whether a DeviceClass keeps `extendedResourceName`. Only then pods that
            request `akri.sh/...` resources run on either path.
    """
    if wanted is not OfferPath.AUTO:
        return wanted
    has_dra = slices_are_served and extended_resources
    return OfferPath.DRA if has_dra else OfferPath.DEVICE_PLUGIN
