"""The network addresses of a device, from its properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from driver.discovery.reach import read_ip, unmapped

_IPS_LIMIT = 16
_HARDWARE_LIMIT = 128


def network_data(properties: Mapping[str, str]) -> dict[str, Any]:
    """`NetworkDeviceData` of a device on the network; empty if it has no address.

    The addresses are the hosts of its URLs, and the values of properties named `…_IP_ADDRESS` and
    `…_MAC_ADDRESS`. The subnet is unknown, so each address has the longest prefix.
    """
    ips = list(dict.fromkeys(_ips(properties)))[:_IPS_LIMIT]
    if not ips:
        return {}
    macs = (v for n, v in sorted(properties.items()) if n.endswith("_MAC_ADDRESS") and v)
    hardware = next((mac for mac in macs if len(mac.encode()) <= _HARDWARE_LIMIT), "")
    return {"ips": ips, **({"hardwareAddress": hardware} if hardware else {})}


def _ips(properties: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(properties.items()):
        host = value if name.endswith("_IP_ADDRESS") else _host(value)
        if (read := read_ip(host)) is not None:
            address = unmapped(read)
            yield f"{address}/{address.max_prefixlen}"


def _host(value: str) -> str:
    if "://" not in value:
        return ""
    try:
        return urlsplit(value).hostname or ""
    except ValueError:
        return ""
