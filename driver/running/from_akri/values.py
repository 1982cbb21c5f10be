"""Values of Akri's chart in a Helm release, and their names in Moorage's chart."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CHART = "akri"
LARGEST = 16 * 1024 * 1024
"""Most bytes of an unpacked release. A Secret of Helm has at most 1 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release of Akri's chart.

    Attributes:
        chart: Name and version.
        values: The values that its user set.
    """

    name: str
    namespace: str
    chart: str
    values: Mapping[str, Any]

    @property
    def deletes_configurations(self) -> bool:
        """Whether a hook deletes all Configurations when the release is uninstalled."""
        return bool((self.values.get("cleanupHook") or {}).get("enabled", True))


def akri_release(secret: Mapping[str, Any]) -> Release | None:
    """The release in a Secret of Helm; None for another chart, or if it cannot be read."""
    try:
        packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        text = zlib.decompressobj(wbits=31).decompress(packed, LARGEST)
        release = json.loads(text)
        chart = release["chart"]["metadata"]
        if chart["name"] != CHART:
            return None
        return Release(
            name=release["name"],
            namespace=release["namespace"],
            chart=f"{CHART} {chart['version']}",
            values=release.get("config") or {},
        )
    except (binascii.Error, KeyError, TypeError, ValueError, zlib.error):
        return None


_HANDLER = r"(udev|onvif|opcua|debugEcho|custom)"
_SAME = re.compile(
    rf"imagePullSecrets|prometheus\.enabled|{_HANDLER}\.configuration\.(enabled|name|capacity"
    rf"|discoveryDetails|discoveryProperties|discoveryHandlerName|shared|brokerProperties"
    r"|brokerPod|brokerJob|create\w+Services?|\w+Service|mountCertificates)(\..*)?"
    r"|(udev|onvif|opcua|debugEcho)\.discovery\.enabled"
)
_RENAMED = {
    r"agent\.host\.(discoveryHandlers|udev)": r"say driver.node.host.\1",
    r"udev\.discovery\.host\.udev": "say driver.node.host.udev",
    r"agent\.host\.kubeletDevicePlugins": "say driver.node.host.devicePlugins",
    r"agent\.host\.kubeletPodResources": "say driver.node.host.kubelet, the folder that it is in",
    r"agent\.resources(\..*)?": "say driver.node.resources, as a container has them",
    r"agent\.nodeSelectors(\..*)?": "say driver.node.nodeSelector",
    r"agent\.tolerations(\..*)?": "say driver.node.tolerations",
}
_NONE = "there is none"


def value_changes(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The path of each value that was set, and the same path or a note if it differs in Moorage."""
    for path in _paths(values):
        renamed = (
            re.fullmatch(old, path) and re.sub(old, new, path) for old, new in _RENAMED.items()
        )
        yield path, path if _SAME.fullmatch(path) else next(filter(None, renamed), _NONE)


def _paths(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in values.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping) and value:
            yield from _paths(value, f"{path}.")
        else:
            yield path
