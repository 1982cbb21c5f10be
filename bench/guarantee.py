"""How long it takes until whole lines of pods have what their queues are guaranteed.

    PYTHONPATH=deploy/local python -m bench.guarantee [--cases alike gangs ...] [--pods 100]

Real etcd, kube-apiserver and kube-scheduler. Queues beyond their quota use all devices, each pod
one claim of its own; then pods of queues below theirs come all at once. Those that are evicted have
a grace of 5 s, and are gone after it: this does what kubelets and controllers do. `free` is the
baseline in the same run: the same pods where the devices are free.

    alike      all pods ask for the same
    gangs      ten at a time go together
    volumes    each has a volume; on each node one device is for them
    repelling  on each node runs a pod that wants none of its kind beside it
    full       twice as many nodes, of which the first half has no CPU left
    classes    eight classes, each with two queues of its own
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bench import measured_cluster, throughput
from bench.cluster_load import NAMESPACE
from bench.first_eviction import remove_claim
from bench.guarantee_load import CASES, GRACE_SECONDS, Case, arrive, furnish
from kube.calls.api import ApiClient, connect
from kube.kinds import PODS
from kube.objects import JsonObject
from kube.stores.api import Change, Deleted, Store
from local_cluster.api import Cluster

MOST_SECONDS = 300.0


@dataclass
class Seen:
    """What happens to pods, and when.

    Attributes:
        bound: When each got its node.
        evicted: When each was first seen to be deleted.
    """

    client: ApiClient
    wanted: int
    bound: dict[str, float] = field(default_factory=dict)
    evicted: dict[str, float] = field(default_factory=dict)
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def note(self, change: Change[JsonObject]) -> None:
        if isinstance(change, Deleted):
            return
        pod, now = change.new, time.perf_counter()
        name = str(pod["metadata"]["name"])
        if pod["metadata"].get("deletionTimestamp") and name not in self.evicted:
            self.evicted[name] = now
            self._start(name)
        if name.startswith("w") and pod["spec"].get("nodeName"):
            self.bound.setdefault(name, now)
            if len(self.bound) >= self.wanted:
                self.enough.set()

    def _start(self, name: str) -> None:
        task = asyncio.create_task(self._end(name))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _end(self, name: str) -> None:
        """As its kubelet and the controllers do when the grace is over."""
        await asyncio.sleep(GRACE_SECONDS)
        await self.client.delete(PODS.at(name, NAMESPACE), grace_period_seconds=0)
        await remove_claim(self.client, name)


@asynccontextmanager
async def watched(client: ApiClient, wanted: int) -> AsyncIterator[Seen]:
    store = Store(client, PODS.select(NAMESPACE), lambda pod: pod)
    task = asyncio.create_task(store.run())
    await store.synced.wait()
    seen = Seen(client, wanted)
    store.subscribe(seen.note)
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task])


async def bound(client: ApiClient, case: Case, pods: int) -> tuple[float, Seen]:
    """Pods of the queues below their quotas come; seconds until the last is bound."""
    async with watched(client, pods) as seen:
        began = time.perf_counter()
        await arrive(client, case, "mine", pods, gated=case.name == "gangs")
        async with asyncio.timeout(MOST_SECONDS):
            await seen.enough.wait()
        return max(seen.bound.values()) - began, seen


async def clear(client: ApiClient, count: int) -> None:
    for number in range(count):
        await client.delete(PODS.at(f"w{number}", NAMESPACE), grace_period_seconds=0)
        await remove_claim(client, f"w{number}")


async def filled(client: ApiClient, case: Case, pods: int) -> None:
    async with throughput.watched_bindings(client, NAMESPACE, pods) as seen:
        await arrive(client, case, "robots", pods, gated=False)
        async with asyncio.timeout(MOST_SECONDS):
            await seen.enough.wait()


async def measure(cluster: Cluster, case: Case, pods: int) -> None:
    async with connect(cluster.kubeconfig) as client:
        await furnish(client, cluster, case, pods)
        with throughput.extended_by(cluster, throughput.PLUGIN):
            free, _ = await bound(client, case, pods)
            await clear(client, pods)
            await filled(client, case, pods)
            took, seen = await bound(client, case, pods)
    report(case, free, took, seen)


def report(case: Case, free: float, took: float, seen: Seen) -> None:
    over = [moment + GRACE_SECONDS for moment in seen.evicted.values()]
    last = max(seen.bound.values())
    print(
        f"{case.name:10} free {free:6.1f} s   taken back {took:6.1f} s,"
        f" {last - min(over):6.1f} s after the first grace's end, {last - max(over):6.1f} s after"
        f" the last's   evicted {len(seen.evicted)}   ratio to free {took / free:5.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--pods", type=int, default=100)
    options = parser.parse_args()
    for name in options.cases:
        with measured_cluster.control_plane(CASES[name].nodes(options.pods)) as cluster:
            asyncio.run(measure(cluster, CASES[name], options.pods))


if __name__ == "__main__":
    main()
