"""From plug to ResourceSlice: how long until the API shows a device that the kernel reported.

    make bench            or: python -m bench.hotplug [--plugs N] [--present N] [--dir DIR]

A real cluster of one node; the driver runs in it as on a node, under its ServiceAccount. A plug of
a loop device is timed from before the request to the kernel until a watch on the API server shows
the device in a slice. In pairs with it, the baseline does the least that any such driver must: it
waits for the kernel's event, adds the device to a slice that it has in memory, writes the slice,
and waits for the watch to show it. Its slice is as full as the driver's, and it knows no other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyudev

from driver.publishing.desired.pace import A_SECOND
from kube.calls.api import ApiClient, connect
from kube.kinds import INSTANCES, SLICES
from kube.objects import JsonObject
from kube.resources import Resource
from kube.stores.api import Store
from local_cluster import loop_devices
from local_cluster.api import Cluster, ClusterSettings
from local_cluster.loop_devices import LoopDevice
from tests.e2e.driver import installation

SLICE = SLICES.at("baseline")
SLICE_LIMIT = 64
FIRST_PRESENT, FIRST_PLUGGED, FIRST_OF_BASELINE = 200_000, 300_000, 400_000
RULE = 'KERNEL=="loop20*|loop30*"'
SECONDS = 30.0
PAUSE_SECONDS = 3 / A_SECOND
"""A device that comes and goes is at most three writes; more of them at once are made to wait."""


class Sightings:
    """What a watch on the API server shows: device nodes that objects name."""

    def __init__(
        self, client: ApiClient, resource: Resource, names: Callable[[JsonObject], frozenset[str]]
    ) -> None:
        self._store = Store(client, resource.select(), names)
        self._changed = asyncio.Event()

    @contextmanager
    def followed(self) -> Iterator[None]:
        task = asyncio.create_task(self._store.run())
        self._store.subscribe(lambda _: self._changed.set())
        try:
            yield
        finally:
            task.cancel()

    async def wait(self, name: str, *, shown: bool = True) -> None:
        async with asyncio.timeout(SECONDS):
            while any(name in names for names in self._store) is not shown:
                self._changed.clear()
                await self._changed.wait()


class Baseline:
    """The least work: the kernel's event, one write, and the watch that shows it."""

    def __init__(self, client: ApiClient, sightings: Sightings, stored: JsonObject) -> None:
        self._client = client
        self._sightings = sightings
        self._slice = stored
        self._monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
        self._monitor.filter_by("block")
        self._monitor.start()

    def forget(self) -> None:
        """Drop the events of plugs that are not the baseline's."""
        while self._monitor.poll(0) is not None:
            pass

    async def react(self, device: LoopDevice) -> None:
        while (event := self._monitor.poll(SECONDS)) is None or event.sys_name != device.name:
            pass
        spec = self._slice["spec"]
        devices = [a_device(device.name), *spec["devices"][1:]]
        body = {**self._slice, "spec": {**spec, "devices": devices}}
        self._slice = await self._client.replace(SLICE, body)
        await self._sightings.wait(str(device.path))


def a_device(name: str) -> JsonObject:
    """With as many attributes as the driver gives a loop device."""
    texts = {
        "UDEV_DEVNODE": f"/dev/{name}",
        "UDEV_DEVPATH": f"/devices/virtual/block/{name}",
        "SUBSYSTEM": "block",
        "DEVTYPE": "disk",
        "configuration": "plug",
        "instance": f"plug-{name}",
    }
    attributes = {key: {"string": text} for key, text in texts.items()}
    return {"name": name, "attributes": attributes}


def a_slice(devices: int) -> JsonObject:
    spec = {
        "driver": "baseline.example.com",
        "pool": {"name": "baseline", "generation": 1, "resourceSliceCount": 1},
        "allNodes": True,
        "devices": [a_device(f"loop{number}") for number in range(devices)],
    }
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": spec}
    return {**body, "metadata": {"name": "baseline"}}


def device_nodes(body: JsonObject) -> frozenset[str]:
    attributes = (device["attributes"] for device in body["spec"].get("devices") or ())
    return frozenset(a["UDEV_DEVNODE"]["string"] for a in attributes if "UDEV_DEVNODE" in a)


async def timed(number: int, seen: Callable[[LoopDevice], Awaitable[None]]) -> float:
    """Seconds from the request to the kernel until the device was seen; it is unplugged again."""
    start = time.perf_counter()
    with loop_devices.plugged(number) as device:
        await seen(device)
        return time.perf_counter() - start


async def measure(cluster: Cluster, plugs: int, present: int) -> tuple[list[float], list[float]]:
    """Seconds of each plug, with the driver and with the baseline, in pairs."""
    async with connect(cluster.kubeconfig) as client:
        slices = Sightings(client, SLICES, device_nodes)
        stored = await client.create(SLICES, a_slice(min(present + 1, SLICE_LIMIT)))
        baseline = Baseline(client, slices, stored)
        driver, least = list[float](), list[float]()
        with slices.followed():
            for number in range(FIRST_PRESENT, FIRST_PRESENT + present):
                await slices.wait(f"/dev/loop{number}")
            await all_written(client, present)
            # Not counted: until then the driver may not have read its Configuration.
            await timed(FIRST_PRESENT + present, lambda d: slices.wait(str(d.path)))
            for i in range(plugs):
                driver.append(await timed(FIRST_PLUGGED + i, lambda d: slices.wait(str(d.path))))
                await slices.wait(f"/dev/loop{FIRST_PLUGGED + i}", shown=False)
                baseline.forget()
                least.append(await timed(FIRST_OF_BASELINE + i, baseline.react))
                await asyncio.sleep(PAUSE_SECONDS)
        return driver, least


async def all_written(client: ApiClient, present: int) -> None:
    """Wait for the Instances of devices that are there: they are written after the slices."""
    async with asyncio.timeout(SECONDS * 4):
        while len((await client.list(INSTANCES.select())).items) < present:  # noqa: ASYNC110  Counted, not told.
            await asyncio.sleep(0.5)


@contextmanager
def prepared_cluster(work_dir: Path, present: int) -> Iterator[Cluster]:
    """One node with the driver, and so many devices that are there before the first plug."""
    devices = [loop_devices.plug(FIRST_PRESENT + i) for i in range(present)]
    cluster = Cluster.up(ClusterSettings(work_dir=work_dir, nodes=1))
    try:
        installation.install_objects(cluster)
        cluster.start_component(installation.node_driver("node-a")).wait_ready()
        cluster.apply(configuration())
        yield cluster
    finally:
        cluster.down(purge=True)
        for device in devices:
            loop_devices.unplug(device)


def configuration() -> JsonObject:
    handler = {"name": "udev", "discoveryDetails": json.dumps({"udevRules": [RULE]})}
    return {**base("akri.sh/v0", "Configuration", "plug"), "spec": {"discoveryHandler": handler}}


def base(api_version: str, kind: str, name: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def percentile(seconds: Sequence[float], share: float) -> float:
    """Milliseconds; the smallest value that at least this share of all does not exceed."""
    return sorted(seconds)[math.ceil(share * len(seconds)) - 1] * 1000


def report(driver: Sequence[float], least: Sequence[float], present: int) -> None:
    print(f"{len(driver)} plugs in pairs, {present} devices present; milliseconds")
    print(f"{'':10}{'p50':>8}{'p99':>8}{'max':>8}")
    for name, seconds in (("driver", driver), ("baseline", least)):
        figures = (percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds) * 1000)
        print(f"{name:10}" + "".join(f"{figure:8.1f}" for figure in figures))
    ratio = statistics.median(a / b for a, b in zip(driver, least, strict=True))
    print(f"driver / baseline, median of the pairs: {ratio:.2f}")


def main() -> int:
    """Measure on a cluster of its own, and print p50, p99 and the ratio."""
    parser = argparse.ArgumentParser(description="From plug to ResourceSlice.")
    parser.add_argument("--plugs", type=int, default=100)
    parser.add_argument("--present", type=int, default=0, help="devices there before")
    parser.add_argument("--dir", type=Path, default=installation.ROOT / ".cluster-bench")
    arguments = parser.parse_args()
    with prepared_cluster(arguments.dir, arguments.present) as cluster:
        driver, least = asyncio.run(measure(cluster, arguments.plugs, arguments.present))
    report(driver, least, arguments.present)
    return 0


if __name__ == "__main__":
    sys.exit(main())
