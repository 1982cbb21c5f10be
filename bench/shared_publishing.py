"""From what nodes say of shared devices to the slices that show them.

    python -m bench.shared_publishing [--devices 1000] [--rounds 5] [--changes 40] [--dir DIR]

A real API server; nodes and their Instances are objects that nobody keeps, `moorage-driver shared`
is a process that leads. Measured are

    anew     all slices of the pool are gone: until all devices are shown again. The driver is
             stopped while they are deleted, and time runs from when it may go on.
    change   one Instance gets another property: until the slice shows it, and how many slices
             were written for it
    away     no node sees one device any more, and then one does again

each until a watch on the API server shows it, and each in turns with the least that any publisher
must do: write the same slices, one after another, of bodies that it has in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import measured_cluster
from bench.idle_driver import process
from kube.calls.api import ApiClient, connect
from kube.kinds import CONFIGURATIONS, INSTANCES, SLICES
from kube.objects import JsonObject
from kube.resources import Resource
from kube.stores.api import Store
from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings

DRIVER, BASELINE = "moorage.dev", "baseline.example.com"
CONFIGURATION = "camera"
AT_ONCE = 32
SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Slice:
    """What matters of a slice here."""

    name: str
    driver: str
    version: str
    generation: int
    count: int
    rooms: Mapping[str, str]
    tainted: frozenset[str]


def seen(body: JsonObject) -> Slice:
    metadata, spec = body["metadata"], body["spec"]
    devices = spec.get("devices") or ()
    return Slice(
        metadata["name"],
        spec["driver"],
        metadata["resourceVersion"],
        spec["pool"]["generation"],
        spec["pool"]["resourceSliceCount"],
        {d["name"]: d["attributes"].get("ROOM", {}).get("string", "") for d in devices},
        frozenset(d["name"] for d in devices if d.get("taints")),
    )


@dataclass
class Sight:
    """What a watch on the API server shows of the slices."""

    store: Store[Slice]
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def of(self, driver: str) -> list[Slice]:
        return [one for one in self.store if one.driver == driver]

    def shown(self, driver: str) -> Mapping[str, str]:
        """Devices that kube-scheduler would take: of the newest generation, if it is complete."""
        slices = self.of(driver)
        newest = max((one.generation for one in slices), default=0)
        complete = [one for one in slices if one.generation == newest]
        if not complete or len(complete) < complete[0].count:
            return {}
        return {name: room for one in complete for name, room in one.rooms.items()}

    def is_tainted(self, name: str) -> bool:
        return any(name in one.tainted for one in self.of(DRIVER))

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not true():
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def sight_of(client: ApiClient) -> AsyncIterator[Sight]:
    found = Sight(Store(client, SLICES.select(), seen))
    found.store.subscribe(lambda _: found.changed.set())
    task = asyncio.create_task(found.store.run())
    try:
        await found.store.synced.wait()
        yield found
    finally:
        task.cancel()


def device_name(number: int) -> str:
    return f"{CONFIGURATION}-{number:06x}"


def instance(number: int, owner: str, nodes: list[str]) -> JsonObject:
    """As nodes' drivers write it."""
    name = device_name(number)
    reference = {"apiVersion": "akri.sh/v0", "kind": "Configuration", "name": CONFIGURATION}
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": {f"{DRIVER}/node": ""},
        "annotations": {f"{DRIVER}/offered-through": "dra"},
        "ownerReferences": [{**reference, "uid": owner, "controller": True}],
    }
    properties = {"ROOM": "first", "URL": f"rtsp://10.0.{number // 250}.{number % 250}/stream"}
    spec = {
        "configurationName": CONFIGURATION,
        "cdiName": f"akri.sh/{CONFIGURATION}={number:06x}",
        "capacity": 1,
        "brokerProperties": properties,
        "shared": True,
        "nodes": nodes,
    }
    return {"apiVersion": "akri.sh/v0", "kind": "Instance", "metadata": metadata, "spec": spec}


def configuration() -> JsonObject:
    spec = {"discoveryHandler": {"name": "debugEcho", "discoveryDetails": "descriptions: [one]"}}
    body = {"apiVersion": "akri.sh/v0", "kind": "Configuration", "spec": spec}
    return {**body, "metadata": {"name": CONFIGURATION, "namespace": "default"}}


async def at_once(calls: Iterable[Callable[[], Awaitable[object]]]) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def limited(call: Callable[[], Awaitable[object]]) -> None:
        async with limit:
            await call()

    await asyncio.gather(*map(limited, calls))


class Bench:
    """The measured acts."""

    def __init__(self, client: ApiClient, sight: Sight, pid: int, nodes: list[str]) -> None:
        self._client = client
        self._sight = sight
        self._pid = pid
        self._nodes = nodes

    async def arrive(self, devices: int) -> tuple[float, float]:
        """Seconds of writing all Instances, and from the last one until all devices are shown."""
        made = await self._client.create(CONFIGURATIONS, configuration())
        owner = made["metadata"]["uid"]
        bodies = [instance(number, owner, self._nodes) for number in range(devices)]
        start = time.perf_counter()
        await at_once(partial(self._client.create, INSTANCES, body) for body in bodies)
        last = time.perf_counter()
        await self._sight.until(lambda: len(self._sight.shown(DRIVER)) == devices)
        return last - start, time.perf_counter() - last

    async def anew(self, devices: int) -> float:
        os.kill(self._pid, signal.SIGSTOP)
        try:
            await self._delete(DRIVER)
            start = time.perf_counter()
        finally:
            os.kill(self._pid, signal.SIGCONT)
        await self._sight.until(lambda: len(self._sight.shown(DRIVER)) == devices)
        return time.perf_counter() - start

    async def _delete(self, driver: str) -> None:
        names = [one.name for one in self._sight.of(driver)]
        await at_once(partial(self._client.delete, SLICES.at(name)) for name in names)
        await self._sight.until(lambda: not self._sight.of(driver))

    async def least_anew(self, devices: int) -> float:
        await self._delete(BASELINE)
        bodies = await self._copies()
        start = time.perf_counter()
        for body in bodies:
            await self._client.create(SLICES, body)
        await self._sight.until(lambda: len(self._sight.shown(BASELINE)) == devices)
        return time.perf_counter() - start

    async def _copies(self) -> list[JsonObject]:
        """The driver's slices as another driver's."""
        stored = (await self._client.list(SLICES.select())).items
        specs = (one["spec"] for one in stored if one["spec"]["driver"] == DRIVER)
        return [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"baseline-{number}"},
                "spec": {**spec, "driver": BASELINE},
            }
            for number, spec in enumerate(specs)
        ]

    async def change(self, number: int, room: str) -> tuple[float, int]:
        """Seconds until a property is shown, and how many slices have changed."""
        before = {one.name: one.version for one in self._sight.of(DRIVER)}
        patch = {"spec": {"brokerProperties": {"ROOM": room}}}
        start = time.perf_counter()
        await self._patch(number, patch)
        name = device_name(number)
        await self._sight.until(lambda: self._sight.shown(DRIVER).get(name) == room)
        seconds = time.perf_counter() - start
        after = {one.name: one.version for one in self._sight.of(DRIVER)}
        return seconds, len(dict(after.items() - before.items()))

    async def least_change(self, number: int, room: str) -> float:
        """As `change`: the Instance is written, a watch could tell, and one slice is written."""
        patch = {"spec": {"discoveryHandler": {"discoveryDetails": f"descriptions: [{room}]"}}}
        stored = await self._client.get(SLICES.at("baseline-0"))
        device = stored["spec"]["devices"][number % len(stored["spec"]["devices"])]
        device["attributes"]["ROOM"] = {"string": room}
        start = time.perf_counter()
        await self._client.merge_patch(CONFIGURATIONS.at("unused", "default"), patch)
        await self._client.replace(SLICES.at("baseline-0"), stored)
        name = device["name"]
        await self._sight.until(lambda: self._sight.shown(BASELINE).get(name) == room)
        return time.perf_counter() - start

    async def leave(self, number: int) -> tuple[float, float]:
        """Seconds until a device that nobody sees is tainted, and until it is back."""
        name, times = device_name(number), []
        for nodes in ([], self._nodes):
            start = time.perf_counter()
            await self._patch(number, {"spec": {"nodes": nodes}})
            await self._sight.until(lambda: self._sight.is_tainted(name) is not bool(nodes))  # noqa: B023  In this round.
            times.append(time.perf_counter() - start)
        return times[0], times[1]

    async def _patch(self, number: int, patch: JsonObject) -> None:
        await self._client.merge_patch(INSTANCES.at(device_name(number), "default"), patch)


@dataclass
class Found:
    """Seconds, in pairs where there is a baseline."""

    written: float = 0
    lag: float = 0
    anew: list[float] = field(default_factory=list)
    least_anew: list[float] = field(default_factory=list)
    change: list[float] = field(default_factory=list)
    least_change: list[float] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    away: list[float] = field(default_factory=list)
    back: list[float] = field(default_factory=list)


async def measure(
    cluster: Cluster, pid: int, nodes: list[str], arguments: argparse.Namespace
) -> Found:
    found, devices = Found(), arguments.devices
    async with connect(cluster.kubeconfig) as client, sight_of(client) as sight:
        bench = Bench(client, sight, pid, nodes)
        await wait_for_leader(client)
        unused = configuration()
        unused["metadata"]["name"] = "unused"
        await client.create(CONFIGURATIONS, unused)
        found.written, found.lag = await bench.arrive(devices)
        for _ in range(arguments.rounds):
            found.anew.append(await bench.anew(devices))
            found.least_anew.append(await bench.least_anew(devices))
        for round_ in range(arguments.changes):
            number = round_ * 37 % devices
            seconds, writes = await bench.change(number, f"room {round_}")
            found.change.append(seconds)
            found.writes.append(writes)
            found.least_change.append(await bench.least_change(number, f"room {round_}"))
        for round_ in range(arguments.rounds):
            away, back = await bench.leave(round_ * 37 % devices)
            found.away.append(away)
            found.back.append(back)
    return found


async def wait_for_leader(client: ApiClient) -> None:
    leases = Resource("coordination.k8s.io", "v1", "leases")
    async with asyncio.timeout(SECONDS):
        while True:
            if (await client.list(leases.select(namespace="moorage-system"))).items:
                return
            await asyncio.sleep(0.1)


def report(found: Found, arguments: argparse.Namespace) -> None:
    print(f"{arguments.devices} shared devices; milliseconds")
    print(f"all Instances written by nodes {found.written * 1000:.0f},")
    print(f"from the last of them until all devices are shown {found.lag * 1000:.0f}")
    print(f"{'':22}{'p50':>8}{'max':>8}{'least':>8}{'ratio':>8}")
    row("all slices anew", found.anew, found.least_anew)
    row("one property", found.change, found.least_change)
    row("one device away", found.away)
    row("and back", found.back)
    slices = sorted(set(found.writes))
    print(f"slices written for one property: {slices}")


def row(name: str, times: list[float], least: list[float] | None = None) -> None:
    text = f"{name:22}{statistics.median(times) * 1000:8.0f}{max(times) * 1000:8.0f}"
    if least:
        ratio = statistics.median(a / b for a, b in zip(times, least, strict=True))
        text += f"{statistics.median(least) * 1000:8.0f}{ratio:8.2f}"
    print(text)


@contextmanager
def control_plane(work_dir: Path) -> Iterator[tuple[Cluster, list[str]]]:
    """An API server that knows two nodes, which nobody runs."""
    settings = ClusterSettings(
        work_dir=work_dir, nodes=0, fake_nodes=2, parts=CONTROL_PLANE, audit=False
    )
    cluster = Cluster.up(settings)
    try:
        measured_cluster.install(cluster)
        names = cluster.kubectl("get", "nodes", "--output=name").stdout.split()
        yield cluster, [name.removeprefix("node/") for name in names]
    finally:
        cluster.down(purge=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--dir", type=Path, default=measured_cluster.WORK_DIR)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        cluster, nodes = stack.enter_context(control_plane(arguments.dir))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="moorage-bench-")))
        flags = (f"--kubeconfig={cluster.kubeconfig}", "--metrics-address=")
        log = folder / "driver.log"
        pid = stack.enter_context(process(("driver", "shared", *flags), log))
        found = asyncio.run(measure(cluster, pid, nodes, arguments))
    report(found, arguments)


if __name__ == "__main__":
    main()
