"""One new device beside thousands that come or go: how long until the API server shows it.

    python -m bench.fair_turns [--devices N] [--rounds N] [--dir DIR]

A real API server and one driver of a node. Timed is a Configuration of one device, from its
creation until its device is in a ResourceSlice and until its Instance is there: at rest, while the
devices of another Configuration come, and while they go. The ratio is over those at rest in the
same run. And how long the devices of a Configuration that was deleted stay in slices.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import measured_cluster
from bench.idle_driver import control_plane, driver_command, process
from bench.process_figures import peak_mib, resident_mib
from kube.calls.api import ApiClient, connect
from kube.kinds import CONFIGURATIONS, INSTANCES, SLICES
from kube.objects import JsonObject
from kube.stores.api import Store
from tests.fakes.pod_resources import FakePodResources

MANY = "many"
LONGEST_SECONDS = 300.0
BEGUN_SECONDS = 0.2
"""How long the many have come or gone when the one comes."""


@dataclass
class Seen:
    """What the API server shows, by the name of the Configuration."""

    slices: Store[dict[str, int]]
    instances: Store[str]
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def devices(self, name: str) -> int:
        return sum(found.get(name, 0) for found in self.slices)

    def objects(self, name: str) -> int:
        return sum(found == name for found in self.instances)

    async def until(self, condition: Callable[[], bool], since: float) -> float:
        """Seconds since then."""
        async with asyncio.timeout(LONGEST_SECONDS):
            while not condition():
                self.changed.clear()
                await self.changed.wait()
        return time.perf_counter() - since


@asynccontextmanager
async def watched(client: ApiClient) -> AsyncIterator[Seen]:
    slices = Store(client, SLICES.select(), devices_by_configuration)
    instances = Store(client, INSTANCES.select(), lambda o: str(o["spec"]["configurationName"]))
    seen = Seen(slices, instances)
    tasks = [asyncio.create_task(store.run()) for store in (slices, instances)]
    for store in (slices, instances):
        await store.synced.wait()
        store.subscribe(lambda _: seen.changed.set())
    try:
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def devices_by_configuration(body: JsonObject) -> dict[str, int]:
    counts: dict[str, int] = {}
    for device in body["spec"].get("devices") or ():
        name = device["attributes"]["configuration"]["string"]
        counts[name] = counts.get(name, 0) + 1
    return counts


def configuration(name: str, devices: int) -> JsonObject:
    descriptions = [f"{name}-{number}" for number in range(devices)]
    details = json.dumps({"descriptions": descriptions, "shared": False})
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"discoveryHandler": {"name": "debugEcho", "discoveryDetails": details}},
    }


@dataclass(frozen=True)
class Many:
    """The others, and what the driver takes in memory."""

    devices: int
    mib: Callable[[], float]


@dataclass
class Times:
    """Seconds of the one device and of the many, and MiB of the driver when these are there."""

    slices: dict[str, list[float]] = field(default_factory=dict)
    instances: dict[str, list[float]] = field(default_factory=dict)
    gone: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)

    async def one(self, client: ApiClient, seen: Seen, when: str) -> None:
        """Create a Configuration of one device; it is deleted again."""
        number = sum(map(len, self.slices.values()))
        name = f"one-{number}"
        since = time.perf_counter()
        await client.create(CONFIGURATIONS, configuration(name, 1))
        published, written = await asyncio.gather(
            seen.until(lambda: seen.devices(name) == 1, since),
            seen.until(lambda: seen.objects(name) == 1, since),
        )
        self.slices.setdefault(when, []).append(published)
        self.instances.setdefault(when, []).append(written)
        await client.delete(CONFIGURATIONS.at(name, "default"))
        print(f"{when:16} slice {published:6.2f} s, Instance {written:6.2f} s", flush=True)

    async def round(self, client: ApiClient, seen: Seen, many: Many) -> None:
        devices = many.devices
        for _ in range(3):
            await self.one(client, seen, "at rest")
        since = time.perf_counter()
        await client.create(CONFIGURATIONS, configuration(MANY, devices))
        await asyncio.sleep(BEGUN_SECONDS)
        await self.one(client, seen, "others come")
        come = await seen.until(lambda: seen.devices(MANY) == devices, since)
        made = await seen.until(lambda: seen.objects(MANY) == devices, since)
        self.mib.append(many.mib())
        print(f"{devices} came: slices {come:.1f} s, Instances {made:.1f} s", flush=True)
        since = time.perf_counter()
        await client.delete(CONFIGURATIONS.at(MANY, "default"))
        await asyncio.sleep(BEGUN_SECONDS)
        await self.one(client, seen, "others go")
        self.gone.append(await seen.until(lambda: seen.devices(MANY) == 0, since))
        ended = await seen.until(lambda: seen.objects(MANY) == 0, since)
        print(f"{devices} went: slices {self.gone[-1]:.1f} s, Instances {ended:.1f} s", flush=True)


async def measure(kubeconfig: Path, many: Many, rounds: int, listings: Path) -> Times:
    """With a kubelet that lists no pod, as that of a node without devices in use."""
    times = Times()
    async with (
        FakePodResources(listings),
        connect(kubeconfig) as client,
        watched(client) as seen,
    ):
        await times.one(client, seen, "first")
        for _ in range(rounds):
            await times.round(client, seen, many)
    return times


def report(times: Times, devices: int) -> None:
    print(f"a new Configuration of one device beside {devices}; seconds, median and most")
    print(f"{'':14}{'slice':>16}{'ratio':>8}{'Instance':>16}{'ratio':>8}")
    for when in ("at rest", "others come", "others go"):
        cells = [cell(found[when], found["at rest"]) for found in (times.slices, times.instances)]
        print(f"{when:14}{''.join(cells)}")
    print(f"devices of a deleted Configuration in slices for at most {max(times.gone):.1f} s")
    print(f"memory of the driver with all of them at most {max(times.mib):.0f} MiB")


def cell(seconds: Sequence[float], rest: Sequence[float]) -> str:
    middle = statistics.median(seconds)
    return f"{middle:8.2f}{max(seconds):8.2f}{middle / statistics.median(rest):8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--dir", type=Path, default=measured_cluster.WORK_DIR)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        cluster, node = stack.enter_context(control_plane(arguments.dir))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="moorage-bench-")))
        command = driver_command(cluster, node, folder, embedded="debugEcho")
        driver = stack.enter_context(process(command, arguments.dir.with_suffix(".driver.log")))
        many = Many(arguments.devices, lambda: resident_mib(driver))
        times = asyncio.run(
            measure(
                cluster.kubeconfig, many, arguments.rounds, folder / "kubelet" / "pod-resources"
            )
        )
        peak = peak_mib(driver)
    report(times, arguments.devices)
    print(f"and at most {peak:.0f} MiB at any moment")


if __name__ == "__main__":
    main()
