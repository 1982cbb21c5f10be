"""Slots of the device plugin: how long Allocate takes, and how soon a slot is free again.

    python -m bench.slots [--pods N] [--at-once N] [--calls N] [--instances N]

A real node of Kubernetes 1.33, without DRA. A third of the pods ask for a slot of one device; the
others, in turn with them, for a device of a plugin that does nothing, neither writes nor reads, and
of one that does nothing but write a slot (the baselines). The kubelet itself says how long each
Allocate took. A slot counts as held from when the API server shows that its pod has ended or is
gone, until it shows the slot free. Then a client makes the kubelet's calls, one at a time.

Then the driver offers many Instances at once: its memory, its CPU while nothing happens, and the
client's calls again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.allocations import (
    Caller,
    driver_socket,
    kubelet_buckets,
    shown,
    shown_buckets,
    timed,
)
from bench.do_nothing_device_plugin import socket_name
from bench.hotplug import base, percentile
from bench.process_figures import cpu_seconds, resident_mib
from driver.device_plugin.node_slots import RESEND_SECONDS
from kube.calls.api import ApiClient, connect
from kube.kinds import INSTANCES, PODS
from kube.objects import JsonObject
from kube.stores.api import Change, Deleted, Modified, Store
from local_cluster.api import BUSYBOX_IMAGE, Cluster, ClusterSettings, Component
from local_cluster.component_handles import ComponentProcess
from tests.e2e.driver import installation
from tests.e2e.legacy import kubelets

NODE = "node-a"

ONE, MANY, NOTHING, WRITES = "one", "many", "nothing", "writes"
WRITTEN = f"{WRITES}-000000"
CAPACITY = 500
SLOTS_OF_MANY = 10
SECONDS = 120.0
IDLE_SECONDS = 20.0
HEAD = f"{'Allocate, milliseconds':34}{'p50':>8}{'p90':>8}{'p99':>8}{'max':>8}{'<= 50 ms':>9}"


@dataclass
class Sightings:
    """When the API server showed that pods ended and slots became free, by `time.monotonic`."""

    running: set[str] = field(default_factory=set)
    ended: dict[str, float] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    freed: dict[str, float] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def take_pod(self, change: Change[tuple[str, str]]) -> None:
        name, phase = change.old if isinstance(change, Deleted) else change.new
        if isinstance(change, Deleted) or phase in ("Succeeded", "Failed"):
            self.ended.setdefault(name, time.monotonic())
        if isinstance(change, Deleted):
            self.gone.add(name)
        elif phase == "Running":
            self.running.add(name)
        self.changed.set()

    def take_instance(self, change: Change[frozenset[str]]) -> None:
        if isinstance(change, Deleted):
            return
        if isinstance(change, Modified):
            now = time.monotonic()
            self.freed |= dict.fromkeys(change.old - change.new, now)
        self.held = change.new
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def pod_seen(body: JsonObject) -> tuple[str, str]:
    return body["metadata"]["name"], body.get("status", {}).get("phase", "")


def slots_held(body: JsonObject) -> frozenset[str]:
    usage = body["spec"].get("deviceUsage") or {}
    return frozenset(slot for slot, holder in usage.items() if holder)


@asynccontextmanager
async def followed(client: ApiClient) -> AsyncIterator[Sightings]:
    """Sightings of all pods, and of the one Instance."""
    sightings = Sightings()
    pods = Store(client, PODS.select("default"), pod_seen)
    instances = Store(client, INSTANCES.select("default"), slots_held)
    pods.subscribe(sightings.take_pod)
    instances.subscribe(sightings.take_instance)
    tasks = [asyncio.create_task(store.run()) for store in (pods, instances)]
    try:
        await pods.synced.wait()
        await instances.synced.wait()
        yield sightings
    finally:
        for task in tasks:
            task.cancel()


def configuration(name: str, devices: int, capacity: int) -> dict[str, object]:
    words = [f"device {number}" for number in range(devices)]
    details = json.dumps({"descriptions": words})
    handler = {"name": "debugEcho", "discoveryDetails": details}
    spec = {"discoveryHandler": handler, "capacity": capacity}
    return {**base("akri.sh/v0", "Configuration", name), "spec": spec}


def pod(name: str, resource: str, seconds: str) -> dict[str, object]:
    """A pod that sleeps; some end by themselves, and the others are deleted."""
    container = {
        "name": "main",
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sleep", seconds],
        "resources": {"limits": {f"akri.sh/{resource}": "1"}},
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    return {**base("v1", "Pod", name), "spec": spec}


async def measure(cluster: Cluster, instance: str, pods: int, at_once: int) -> list[float]:
    """Seconds for which slots were held after their pods had ended; so many start together."""
    seconds = list[float]()
    async with connect(cluster.kubeconfig) as client, followed(client) as seen:
        for start in range(0, pods, at_once):
            names = [f"pod-{number}" for number in range(start, min(start + at_once, pods))]
            seconds += await _round(cluster, client, seen, (instance, names))
    return seconds


async def _round(
    cluster: Cluster, client: ApiClient, seen: Sightings, wanted: tuple[str, list[str]]
) -> list[float]:
    instance, names = wanted
    others = [f"{resource}-{name}" for name in names for resource in (NOTHING, WRITES)]
    for number, name in enumerate(names):
        # By an end of their own, and by a deletion: the kubelet tells of both.
        await client.create(PODS, pod(name, instance, "8" if number % 2 else "100000"))
        for resource in (NOTHING, WRITES):
            await client.create(PODS, pod(f"{resource}-{name}", resource, "100000"))
    await seen.until(lambda: seen.running.issuperset((*names, *others)))
    given = kubelets.devices_given(cluster, NODE)
    slots = {name: slot for name in names for slot in given[f"default/{name}"]}
    for name in (*names[::2], *others):
        await _delete(client, name)
    await seen.until(lambda: all(n in seen.ended and s in seen.freed for n, s in slots.items()))
    for name in names[1::2]:
        await _delete(client, name)
    await seen.until(lambda: seen.gone.issuperset((*names, *others)))
    return [seen.freed.pop(slot) - seen.ended[name] for name, slot in slots.items()]


async def _delete(client: ApiClient, name: str) -> None:
    """As a user does; the object goes when the kubelet has ended the pod."""
    await client.delete(PODS.at(name, "default"), grace_period_seconds=1)


def wait_offered(cluster: Cluster, what: str, offers: Callable[[Mapping[str, int]], bool]) -> None:
    """Until the node's `akri.sh/...` resources are as they should be."""
    cluster.wait_until(what, lambda: offers(kubelets.allocatable(cluster, NODE)), seconds=SECONDS)


def instance_of_one(cluster: Cluster) -> str:
    """The Instance whose slots are measured, once it is offered with the baseline's devices."""
    wanted = {ONE: 1, NOTHING: CAPACITY, WRITES: CAPACITY}
    wait_offered(cluster, f"{NODE} offers {wanted}", lambda found: wanted.items() <= found.items())
    found = kubelets.allocatable(cluster, NODE)
    return next(name for name in found if name.startswith(f"{ONE}-"))


async def call(
    cluster: Cluster, driver: ComponentProcess, device: tuple[str, list[str]], calls: int
) -> None:
    """Have a client ask for devices of a resource, one at a time, and of the baselines as well."""
    resource, ids = device
    folder = cluster.node(NODE).path("/var/lib/kubelet/device-plugins")
    caller = Caller()
    pid = driver.pid
    assert pid is not None
    asked = {
        "driver": caller.calls(driver_socket(folder, resource)),
        "writes one slot, no more": caller.calls(folder / socket_name(WRITES)),
        "does nothing": caller.calls(folder / socket_name(NOTHING)),
    }
    try:
        before = cpu_seconds(pid)
        seconds = await timed(asked, ids[: calls + 1])
        used = (cpu_seconds(pid) - before) / len(ids[: calls + 1])
    finally:
        await caller.close()
    print(
        f"{calls} calls of {resource} by a client; the driver's CPU was {used * 1000:.1f} ms each"
    )
    print(HEAD)
    for name, found in seconds.items():
        print(shown(name, found))


def slots_of(instance: str) -> tuple[str, list[str]]:
    return f"akri.sh/{instance}", [f"{instance}-{index}" for index in range(CAPACITY)]


def instances_of_many(cluster: Cluster) -> tuple[str, list[str]]:
    """As the Configuration's devices, each is an Instance."""
    found = kubelets.allocatable(cluster, NODE)
    return f"akri.sh/{MANY}", sorted(name for name in found if name.startswith(f"{MANY}-"))


def offer_many(cluster: Cluster, driver: ComponentProcess, instances: int) -> str:
    """Memory and CPU of the driver with so many Instances."""
    cluster.apply(configuration(MANY, instances, SLOTS_OF_MANY))
    start = time.monotonic()

    def are_all(found: Mapping[str, int]) -> bool:
        return sum(n.startswith(f"{MANY}-") and a > 0 for n, a in found.items()) == instances

    wait_offered(cluster, f"{NODE} offers {instances} Instances", are_all)
    offered = time.monotonic() - start
    pid = driver.pid
    assert pid is not None
    time.sleep(RESEND_SECONDS)  # A round of lists that began before is over then.
    before = cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    idle = (cpu_seconds(pid) - before) / IDLE_SECONDS
    return (
        f"{instances} Instances of {SLOTS_OF_MANY} slots: {resident_mib(pid):.0f} MiB, idle"
        f" {idle:.2%} of a core; all were offered after {offered:.1f} s"
    )


def start_baseline(cluster: Cluster, name: str, *flags: str) -> None:
    module = ("-m", "bench.do_nothing_device_plugin")
    argv = (sys.executable, *module, f"akri.sh/{name}", str(CAPACITY), *flags)
    cluster.start_component(Component(name=name, argv=argv, node=NODE, cwd=installation.ROOT))


def written_instance() -> dict[str, object]:
    """What a baseline writes to; the driver sees none without its label."""
    spec = {"configurationName": WRITES, "cdiName": f"akri.sh/{WRITES}=0", "capacity": CAPACITY}
    return {**base("akri.sh/v0", "Instance", WRITTEN), "spec": spec}


@contextmanager
def prepared_cluster(work_dir: Path) -> Iterator[tuple[Cluster, ComponentProcess]]:
    """One node with the driver, the baselines, and one device of many slots."""
    settings = ClusterSettings(work_dir=work_dir, kubernetes="1.33", nodes=1, audit=False)
    cluster = Cluster.up(settings)
    try:
        installation.install_objects(cluster)
        driver = cluster.start_component(replace(installation.node_driver(NODE), ready=None))
        assert isinstance(driver, ComponentProcess)
        cluster.apply(written_instance())
        start_baseline(cluster, NOTHING)
        start_baseline(
            cluster, WRITES, "--writes", WRITTEN, "--kubeconfig", str(cluster.kubeconfig)
        )
        cluster.wait(f"node/{NODE}", "condition=Ready")
        cluster.apply(configuration(ONE, 1, CAPACITY))
        yield cluster, driver
    finally:
        cluster.down(purge=True)


def report(cluster: Cluster, freed: Sequence[float]) -> None:
    print(f"{len(freed)} pods, each beside one of each baseline, by the kubelet")
    print(HEAD)
    names = {f"akri.sh/{NOTHING}": "does nothing", f"akri.sh/{WRITES}": "writes one slot, no more"}
    for resource, buckets in sorted(kubelet_buckets(cluster, NODE).items(), reverse=True):
        print(shown_buckets(names.get(resource, "driver"), buckets))
    figures = (*(percentile(freed, share) for share in (0.5, 0.9, 0.99)), max(freed) * 1000)
    print(f"{'slot held after its pod ended':34}{''.join(f'{figure:8.1f}' for figure in figures)}")


def main() -> int:
    """Measure on a cluster of its own, and print what was found."""
    parser = argparse.ArgumentParser(description="Allocate, release, and many Instances.")
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=4, help="pods that start together")
    parser.add_argument("--calls", type=int, default=300, help="of a client; 0: none")
    parser.add_argument("--instances", type=int, default=1000, help="0: leave that part out")
    parser.add_argument("--work-dir", type=Path, default=installation.ROOT / ".cluster-bench")
    arguments = parser.parse_args()
    with prepared_cluster(arguments.work_dir) as (cluster, driver):
        instance = instance_of_one(cluster)
        if arguments.pods:
            freed = asyncio.run(measure(cluster, instance, arguments.pods, arguments.at_once))
            report(cluster, freed)
        if arguments.calls:
            asyncio.run(call(cluster, driver, slots_of(instance), arguments.calls))
        if arguments.instances:
            print(offer_many(cluster, driver, arguments.instances))
        if arguments.instances and arguments.calls:
            asyncio.run(call(cluster, driver, slots_of(instance), arguments.calls))
            asyncio.run(call(cluster, driver, instances_of_many(cluster), arguments.calls))
    return 0


if __name__ == "__main__":
    sys.exit(main())
