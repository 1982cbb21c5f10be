"""From the arrival of a pod within its quota to the first eviction for it.

    PYTHONPATH=deploy/local python -m bench.first_eviction [--claims 1000] [--waiting 200]

Real etcd, kube-apiserver and kube-scheduler; queues without a quota use all devices, each pod one
of its own, and others of them wait for more. Then pods of a queue that is guaranteed all of it
arrive one after the other, each when the one before is bound:

    room      at the gate, since a limit is reached above both queues
    device    without a gate: kube-scheduler finds no node that has one

Time runs from before the pod is created until a watch shows that another was deleted. No controller
runs here that would take the claim of whoever was evicted away: this does, after the time is taken.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from statistics import quantiles
from typing import Any

from bench import cluster_load, measured_cluster, throughput
from bench.cluster_load import DEVICE_CLASS, NAMESPACE, QUEUE_OBJECTS
from kube.calls.api import ApiClient, connect
from kube.kinds import CLAIMS, CLASSES, PODS
from kube.objects import JsonObject
from kube.stores.api import Change, Deleted, Store
from local_cluster.api import Cluster
from scheduler_plugin.objects.names import GROUP, QUEUE_KIND, QUEUE_LABEL, QUOTA_GATE, VERSION

ROOM, DEVICE = "room", "device"
WANTS = (ROOM, DEVICE)
ROOT, MINE = "root", "mine"
MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """How many claims of how many queues are used, how many pods wait for more, how many come."""

    claims: int
    queues: int
    waiting: int
    arrivals: int

    @property
    def nodes(self) -> int:
        return self.claims // cluster_load.DEVICES_PER_NODE


def a_queue(name: str, quota: int, limit: int, parent: str = ROOT) -> JsonObject:
    share = {"deviceClass": DEVICE_CLASS, "quota": quota, "limit": limit}
    spec = {"namespaceSelector": {}, "resources": [share], **({"parent": parent} if parent else {})}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": QUEUE_KIND,
        "metadata": {"name": name},
        "spec": spec,
    }


def a_claim(name: str) -> JsonObject:
    body = cluster_load.a_claim(0)
    return body | {"metadata": {"name": name, "namespace": NAMESPACE}}


def a_pod(name: str, queue: str, *, gated: bool = False) -> JsonObject:
    """A pod with a claim of its name."""
    body: dict[str, Any] = cluster_load.a_pod(0, cluster_load.Load(0, 1, 1))
    body["metadata"] |= {"name": name, "labels": {QUEUE_LABEL: queue}}
    body["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
    if gated:
        body["spec"]["schedulingGates"] = [{"name": QUOTA_GATE}]
    return body


async def fill(client: ApiClient, load: Load) -> None:
    """Let the queues without a quota have all devices, and want more."""
    await cluster_load.furnish(client, cluster_load.Load(load.nodes, 0, 0))
    await client.create(CLASSES, cluster_load.a_class())
    await client.create(QUEUE_OBJECTS, a_queue(ROOT, -1, load.claims, parent=""))
    await client.create(QUEUE_OBJECTS, a_queue(MINE, -1, -1))
    for number in range(load.queues):
        await client.create(QUEUE_OBJECTS, a_queue(f"robots-{number}", 0, -1))
    names = {f"r{n}": f"robots-{n % load.queues}" for n in range(load.claims + load.waiting)}
    await cluster_load.create_all(client, CLAIMS, (a_claim(name) for name in names))
    async with throughput.watched_bindings(client, NAMESPACE, load.claims) as seen:
        pods = (a_pod(name, queue, gated=True) for name, queue in names.items())
        await cluster_load.create_all(client, PODS, pods)
        await seen.enough.wait()


@asynccontextmanager
async def watched_pods(client: ApiClient) -> AsyncIterator[asyncio.Queue[Change[JsonObject]]]:
    """The changes of all pods from now on."""
    store = Store(client, PODS.select(NAMESPACE), lambda pod: pod)
    task = asyncio.create_task(store.run())
    await store.synced.wait()
    changes: asyncio.Queue[Change[JsonObject]] = asyncio.Queue()
    store.subscribe(changes.put_nowait)
    try:
        yield changes
    finally:
        task.cancel()
        await asyncio.wait([task])


async def arrive(client: ApiClient, name: str, *, gated: bool) -> float:
    """Seconds until somebody was evicted for a pod that arrives; returns once it is bound."""
    await client.create(CLAIMS, a_claim(name))
    async with watched_pods(client) as changes:
        began = time.perf_counter()
        await client.create(PODS, a_pod(name, MINE, gated=gated))
        while not isinstance(change := await changes.get(), Deleted):
            continue
        took = time.perf_counter() - began
        await remove_claim(client, change.old["metadata"]["name"])
        while not is_bound(await changes.get(), name):
            continue
    return took


def is_bound(change: Change[JsonObject], name: str) -> bool:
    if isinstance(change, Deleted):
        return False
    pod = change.new
    return pod["metadata"]["name"] == name and bool(pod["spec"].get("nodeName"))


async def remove_claim(client: ApiClient, name: str) -> None:
    """As the controllers do: nobody uses it, it has no device, it goes."""
    free = {"status": {"reservedFor": None, "allocation": None}}
    await client.merge_patch(CLAIMS.at(name, NAMESPACE, subresource="status"), free)
    path = CLAIMS.at(name, NAMESPACE)
    await client.merge_patch(path, {"metadata": {"finalizers": None}})
    await client.delete(path)


async def measure(cluster: Cluster, load: Load, wants: Sequence[str]) -> None:
    async with connect(cluster.kubeconfig) as client:
        with throughput.extended_by(cluster, throughput.PLUGIN):
            await fill(client, load)
            for want in wants:
                limit = load.claims if want == ROOM else -1
                changed = a_queue(ROOT, -1, limit, parent="")
                await client.merge_patch(QUEUE_OBJECTS.at(ROOT), {"spec": changed["spec"]})
                refused = 0 if want == ROOM else load.waiting
                cluster.wait_until("all wait", partial(is_refused, cluster, refused), seconds=60)
                took = []
                for number in range(load.arrivals):
                    async with asyncio.timeout(MOST_SECONDS):
                        took.append(await arrive(client, f"{want}-{number}", gated=want == ROOM))
                report(want, took)


def is_refused(cluster: Cluster, count: int) -> bool:
    return measured_cluster.unschedulable_pods(cluster) == count


def report(want: str, took: Sequence[float]) -> None:
    cuts = [1000 * cut for cut in quantiles(took, n=100, method="inclusive")]
    print(f"{want}: {len(took)} pods, p50 {cuts[49]:.0f} ms, p99 {cuts[98]:.0f} ms", end=", ")
    print(f"most {1000 * max(took):.0f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wants", nargs="+", choices=WANTS, default=WANTS)
    parser.add_argument("--claims", type=int, default=1_000)
    parser.add_argument("--queues", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=200)
    parser.add_argument("--arrivals", type=int, default=100)
    given = parser.parse_args()
    load = Load(given.claims, given.queues, given.waiting, given.arrivals)
    with measured_cluster.control_plane(load.nodes) as cluster:
        asyncio.run(measure(cluster, load, given.wants))


if __name__ == "__main__":
    main()
