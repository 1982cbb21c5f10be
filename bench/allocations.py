"""Allocates of device plugins, timed: by a client at their sockets, and by the kubelet.

The client calls one plugin after the other, and one at a time, as the kubelet does; so it knows
each figure exactly, and nothing else happens on the node. The kubelet's own histogram is exact at
its bounds, of which 50 ms is one, and what it times happens while pods start.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import grpc.aio

from bench.hotplug import percentile
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as v1beta1
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2_grpc as v1beta1_grpc
from driver.names import short_hash
from local_cluster.api import Cluster

LIMIT_SECONDS = 0.05
BUCKET = re.compile(
    r"^kubelet_device_plugin_alloc_duration_seconds_bucket"
    r'{resource_name="(?P<resource>[^"]+)",le="(?P<bound>[^"]+)"} (?P<count>\d+)$',
    re.MULTILINE,
)

Buckets = Sequence[tuple[float, int]]
"""How many Allocates took at most so many seconds."""

Call = Callable[[str], Awaitable[object]]
"""Give a device."""


def driver_socket(folder: Path, resource: str) -> Path:
    """Where the driver serves a resource, in the kubelet's folder."""
    return folder / "moorage" / f"{short_hash(resource)}.sock"


class Caller:
    """A client of device plugins, as the kubelet is."""

    def __init__(self) -> None:
        self._channels: list[grpc.aio.Channel] = []

    def calls(self, socket: Path) -> Call:
        """What asks the plugin at a socket for one device."""
        channel = grpc.aio.insecure_channel(f"unix:{socket}")
        self._channels.append(channel)
        plugin: v1beta1_grpc.DevicePluginAsyncStub = v1beta1_grpc.DevicePluginStub(channel)

        async def call(device: str) -> None:
            container = v1beta1.ContainerAllocateRequest(devices_ids=[device])
            await plugin.Allocate(v1beta1.AllocateRequest(container_requests=[container]))

        return call

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()


async def timed(calls: Mapping[str, Call], devices: Iterable[str]) -> dict[str, list[float]]:
    """Seconds of each call for each device, in turn; the first device warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for device in devices:
        for name, call in calls.items():
            start = time.perf_counter()
            await call(device)
            seconds[name].append(time.perf_counter() - start)
    return {name: found[1:] for name, found in seconds.items()}


def kubelet_buckets(cluster: Cluster, node: str) -> dict[str, Buckets]:
    """The kubelet's histogram of each resource."""
    with cluster.api() as api:
        page = str(api.get(f"/api/v1/nodes/{node}/proxy/metrics"))
    found: dict[str, list[tuple[float, int]]] = {}
    for match in BUCKET.finditer(page):
        bucket = (float(match["bound"]), int(match["count"]))
        found.setdefault(match["resource"], []).append(bucket)
    return dict(found)


def within(buckets: Buckets, seconds: float = LIMIT_SECONDS) -> float:
    """The share of Allocates that took at most as long as a bound of the histogram."""
    return dict(buckets)[seconds] / max(1, buckets[-1][1])


def bounds(buckets: Buckets, share: float) -> tuple[float, float]:
    """Milliseconds between which this share of the Allocates ended: all that a histogram says."""
    wanted = share * buckets[-1][1]
    for (low, below), (high, count) in pairwise([(0.0, 0), *buckets]):
        if count >= wanted and count > below:
            return low * 1000, high * 1000
    return float("nan"), float("nan")


def shown(name: str, seconds: Sequence[float]) -> str:
    """A line of milliseconds: p50, p90, p99, the longest, and the share within the limit."""
    figures = (*(percentile(seconds, share) for share in (0.5, 0.9, 0.99)), max(seconds) * 1000)
    share = sum(one <= LIMIT_SECONDS for one in seconds) / len(seconds)
    return f"{name:34}{''.join(f'{figure:8.1f}' for figure in figures)}{share:9.1%}"


def shown_buckets(name: str, buckets: Buckets) -> str:
    """The same of a histogram, as far as it says."""
    ranges = ("{:.0f}-{:.0f}".format(*bounds(buckets, share)) for share in (0.5, 0.9, 0.99, 1.0))
    return f"{name:34}{''.join(f'{text:>8}' for text in ranges)}{within(buckets):9.1%}"
