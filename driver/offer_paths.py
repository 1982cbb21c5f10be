"""The two contracts of the kubelet by which devices can be offered, and the choice of one.

A device is never offered by both, since each would give away what the other has given already.
"""

from __future__ import annotations

import re
from enum import StrEnum

EXTENDED_RESOURCES_SINCE = 36
"""Minor version of the first kubelet that prepares claims of extended resources by default."""


class OfferPath(StrEnum):
    """A value of `--path`."""

    AUTO = "auto"
    DRA = "dra"
    DEVICE_PLUGIN = "device-plugin"


def prepares_extended_resources(kubelet: str) -> bool:
    """Whether a kubelet of this version prepares the claims of pods that ask for `akri.sh/...`.

    An older one starts their containers without the devices, and tells no one. A version that is
    not of Kubernetes' form counts as new.
    """
    found = re.match(r"v?1\.(\d+)", kubelet)
    return found is None or int(found[1]) >= EXTENDED_RESOURCES_SINCE


def taken_path(
    wanted: OfferPath, *, slices_are_served: bool, extended_resources: bool
) -> OfferPath:
    """The path that a node takes.

    Args:
        wanted: The setting.
        slices_are_served: Whether the API server serves ResourceSlices.
        extended_resources: Whether a DeviceClass keeps `extendedResourceName`, and the kubelet
            prepares the claims that kube-scheduler makes of such names. Only then pods that
            request `akri.sh/...` resources run on either path.
    """
    if wanted is not OfferPath.AUTO:
        return wanted
    has_dra = slices_are_served and extended_resources
    return OfferPath.DRA if has_dra else OfferPath.DEVICE_PLUGIN
