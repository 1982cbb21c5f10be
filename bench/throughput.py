"""Pods bound per second: kube-scheduler alone, with an extender that does the least, with ours.

    PYTHONPATH=deploy/local python -m bench.throughput [--rounds N]
        [--peers bare do-nothing watches books plugin] [--arrivals released piled] [--policies]

Real etcd, kube-apiserver and kube-scheduler; 500 fake nodes with eight devices each, 2,000 pods of
20 queues that share 400 claims; clients that nobody slows down (kube-scheduler's `qps` is 5000).
Two kinds of load:

    released    kube-scheduler runs, and all pods wait for a DeviceClass, which is then created
    piled       class and pods are there, and then kube-scheduler is started

Time runs from the first binding to the last, as a watch shows them, and CPU from the moment before
the class or kube-scheduler comes until the last binding. `middle` leaves the first and the last
5 % of the bindings out, among which are those that met a conflict and waited a second for their
next try. Each peer is measured once in every round, in turns; the ratios are medians of the rounds'
ratios. With --policies those of deploy/policies are installed while the plugin is measured. The
peer `without-reclaim` is ours with nobody in it who takes devices back; nobody has to here.

Peers `watches` and `books` are the do-nothing extender with a part of the plugin beside it: what no
plugin of this shape is without (its pods and claims watched and decoded), and what none that
accounts is without (the ledger kept). What the plugin costs beside them is what it decides.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bench import cluster_load, measured_cluster
from bench.cluster_load import Load
from bench.process_figures import cpu_seconds
from kube.calls.api import ApiClient, connect
from kube.kinds import CLAIMS, CLASSES, PODS
from kube.stores.api import Store
from local_cluster.api import Cluster

F = TypeVar("F")

REFUSED = "full-"
"""What the names of queues begin with whose pods are refused."""

BARE, LEAST, PLUGIN, WITHOUT = "bare", "do-nothing", "plugin", "without-reclaim"
OURS = {PLUGIN: "scheduler_plugin", WITHOUT: "bench.without_reclaim"}
BESIDE_LEAST = ("watches", "books")
"""The do-nothing extender with a part of the plugin beside it; see `bench.do_nothing_extender`."""

PEERS = (BARE, LEAST, PLUGIN)
ALL_PEERS = (*PEERS, *BESIDE_LEAST, WITHOUT)
RELEASED, PILED = "released", "piled"
ARRIVALS = (RELEASED, PILED)
MOST_SECONDS = 600.0
EXTENDER, API_SERVER = "extender", "kube-apiserver"
PARTS = (API_SERVER, "etcd", measured_cluster.SCHEDULER_PART)


@dataclass(frozen=True, slots=True)
class Figures:
    """One run of one peer; CPU in milliseconds a pod, by process."""

    per_second: float
    middle_per_second: float
    cpu: dict[str, float]
    requests: dict[str, float]

    @property
    def requests_per_pod(self) -> float:
        return sum(self.requests.values())


@contextmanager
def extended_by(cluster: Cluster, peer: str, **settings: object) -> Iterator[int | None]:
    """The peer beside a fresh kube-scheduler; yields the pid of the extender.

    `settings` are more of kube-scheduler's configuration.
    """
    with (
        measured_cluster.scheduler(cluster, extended=peer != BARE, **settings),
        extender(cluster, peer, "readyz") as pid,
    ):
        yield pid


@contextmanager
def extender(cluster: Cluster, peer: str, page: str) -> Iterator[int | None]:
    """The peer's extender; yields its pid, None where it has none."""
    if peer == BARE:
        yield None
        return
    namespace, account = measured_cluster.PLUGIN_ACCOUNT
    kubeconfig = cluster.service_account_kubeconfig(account, namespace=namespace)
    argv = command(peer, kubeconfig)
    port = measured_cluster.PAGES_PORT if peer in OURS else measured_cluster.EXTENDER_PORT
    with measured_cluster.beside_scheduler(cluster, peer, argv, f"{port}/{page}") as pid:
        yield pid


def command(peer: str, kubeconfig: Path) -> tuple[str, ...]:
    given = ("--kubeconfig", str(kubeconfig))
    if peer not in OURS:
        beside = peer if peer in BESIDE_LEAST else "nothing"
        extender = ("-m", "bench.do_nothing_extender", *given)
        return (*extender, "--refuse", REFUSED, "--beside", beside)
    return ("-m", OURS[peer], "serve", *given, "--lease", measured_cluster.LEASE)


@dataclass(slots=True)
class Bindings:
    """The bindings that are seen.

    Attributes:
        times: When each was seen.
        enough: Set when as many are seen as were asked for.
    """

    times: list[float] = field(default_factory=list)
    enough: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def watched_bindings(client: ApiClient, namespace: str, most: int) -> AsyncIterator[Bindings]:
    """Watch the pods of a namespace being bound."""
    selection = PODS.select(namespace, field_selector="spec.nodeName!=")
    store = Store(client, selection, lambda pod: str(pod["metadata"]["name"]))
    task = asyncio.create_task(store.run())
    await store.synced.wait()
    seen = Bindings()

    def note(_change: object) -> None:
        seen.times.append(time.perf_counter())
        if len(seen.times) >= most:
            seen.enough.set()

    store.subscribe(note)
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task])


@dataclass(frozen=True, slots=True)
class Prepared:
    """All is there but one thing.

    Attributes:
        extender: Its pid, if there is one.
        go: Brings what is missing: then pods are bound.
    """

    extender: int | None
    go: Callable[[], Awaitable[object]]


@asynccontextmanager
async def prepared(
    cluster: Cluster, client: ApiClient, peer: str, arrival: str, load: Load
) -> AsyncIterator[Prepared]:
    if arrival == RELEASED:
        with extended_by(cluster, peer) as pid:
            await cluster_load.pile_up(client, load)
            cluster.wait_until(
                "all pods wait",
                lambda: measured_cluster.unschedulable_pods(cluster) == load.pods,
                seconds=120,
            )
            yield Prepared(pid, lambda: cluster_load.release(client))
    else:
        with measured_cluster.scheduler(cluster, extended=peer != BARE):
            measured_cluster.end_scheduler(cluster)
            await cluster_load.release(client)
            await cluster_load.pile_up(client, load)
            with extender(cluster, peer, "healthz") as pid:
                measured_cluster.until_idle(pid)
                start = cluster.part(measured_cluster.SCHEDULER_PART).start
                yield Prepared(pid, lambda: asyncio.to_thread(start))


async def bound_at(
    cluster: Cluster, client: ApiClient, load: Load, go: Callable[[], Awaitable[object]]
) -> list[float]:
    """Let the pods be bound, and return when each binding was seen."""
    async with watched_bindings(client, cluster_load.NAMESPACE, load.pods) as seen:
        try:
            async with asyncio.timeout(MOST_SECONDS):
                await go()
                await measured_cluster.while_scheduler_runs(cluster, seen.enough.wait())
        finally:
            print(f"  {len(seen.times)} of {load.pods} pods bound", flush=True)
    return seen.times


async def run(cluster: Cluster, peer: str, arrival: str, load: Load) -> Figures:
    async with connect(cluster.kubeconfig) as client:
        async with prepared(cluster, client, peer, arrival, load) as ready:
            requests = measured_cluster.until_steady(lambda: measured_cluster.api_requests(cluster))
            before = cpu_of_all(cluster, ready.extender)
            times = await bound_at(cluster, client, load, ready.go)
            after = cpu_of_all(cluster, ready.extender)
            cpu = {name: spent - before.get(name, 0.0) for name, spent in after.items()}
            asked = measured_cluster.until_steady(lambda: measured_cluster.api_requests(cluster))
        await withdraw(client)
        await clear(cluster, client, cluster_load.NAMESPACE)
    return figures(times, cpu, asked - requests, load)


def cpu_of_all(cluster: Cluster, extender: int | None) -> dict[str, float]:
    """Seconds so far, by process; of those that run."""
    pids = {name: cluster.part(name).pid for name in PARTS} | {EXTENDER: extender}
    return {name: cpu_seconds(pid) for name, pid in pids.items() if pid is not None}


def figures(
    times: Sequence[float], cpu: dict[str, float], requests: Counter[str], load: Load
) -> Figures:
    edge = len(times) // 20
    return Figures(
        (len(times) - 1) / (times[-1] - times[0]),
        (len(times) - 2 * edge - 1) / (times[-1 - edge] - times[edge]),
        {name: seconds / load.pods * 1000 for name, seconds in cpu.items()},
        {name: count / load.pods for name, count in requests.items()},
    )


async def clear(cluster: Cluster, client: ApiClient, namespace: str) -> None:
    """As it was before the pods. No controller runs that would let go of the claims."""
    claims = await client.list(CLAIMS.select(namespace))
    at_once = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    with cluster.api() as api:
        api.request("DELETE", f"/api/v1/namespaces/{namespace}/pods", at_once)
        for claim in claims.items:
            if claim["metadata"].get("finalizers"):
                name = claim["metadata"]["name"]
                api.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})
        api.delete(path)


async def withdraw(client: ApiClient) -> None:
    """Let the next pods wait again."""
    await client.delete(CLASSES.at(cluster_load.DEVICE_CLASS))


def report(rounds: Sequence[dict[str, Figures]], arrival: str, load: Load) -> None:
    print(f"{arrival}: {load.pods} pods, {load.claims} claims, {load.nodes} nodes")
    print(f"{'':12}{'pods/s':>8}{'middle':>8}{'requests':>10}  CPU ms a pod")
    for peer in rounds[0]:
        runs = [found[peer] for found in rounds]
        speed = statistics.median(r.per_second for r in runs)
        middle = statistics.median(r.middle_per_second for r in runs)
        calls = statistics.median(r.requests_per_pod for r in runs)
        cpu = " ".join(
            f"{name}={statistics.median(r.cpu[name] for r in runs):.2f}" for name in runs[0].cpu
        )
        print(f"{peer:12}{speed:8.1f}{middle:8.1f}{calls:10.2f}  {cpu}")
    floors = [(peer, LEAST) for peer in BESIDE_LEAST] + [(PLUGIN, peer) for peer in BESIDE_LEAST]
    for above, below in (
        (LEAST, BARE),
        (PLUGIN, LEAST),
        (PLUGIN, BARE),
        (PLUGIN, WITHOUT),
        *floors,
    ):
        if above in rounds[0] and below in rounds[0]:
            print(f"{above} / {below}, median (each round):")
            report_ratios(rounds, above, below)


RATIOS: Mapping[str, Callable[[Figures], float]] = {
    "pods/s": lambda found: found.per_second,
    "middle": lambda found: found.middle_per_second,
    "requests": lambda found: found.requests_per_pod,
    "CPU of the API server": lambda found: found.cpu[API_SERVER],
    "CPU of the extender": lambda found: found.cpu.get(EXTENDER, 0.0),
}


def report_ratios(rounds: Sequence[dict[str, Figures]], above: str, below: str) -> None:
    for name, figure in RATIOS.items():
        pairs = [(figure(found[above]), figure(found[below])) for found in rounds]
        if all(base for _, base in pairs):
            each = [value / base for value, base in pairs]
            shown = ", ".join(f"{ratio:.2f}" for ratio in each)
            print(f"  {name:24}{statistics.median(each):.3f} ({shown})")


@contextmanager
def measuring(peer: str, cluster: Cluster, *, policies: bool) -> Iterator[None]:
    """What is set up for this peer only."""
    with ExitStack() as stack:
        if policies and peer == PLUGIN:
            measured_cluster.policies(cluster, installed=True)
            stack.callback(measured_cluster.policies, cluster, installed=False)
        yield


def measure(arguments: argparse.Namespace, load: Load) -> None:
    with measured_cluster.control_plane(load.nodes) as cluster:
        asyncio.run(furnish(cluster, load))
        for arrival in arguments.arrivals:

            def measured(peer: str, arrival: str = arrival) -> Figures:
                with measuring(peer, cluster, policies=arguments.policies):
                    return asyncio.run(run(cluster, peer, arrival, load))

            rounds = in_turns(arguments.peers, arguments.rounds, measured, shown)
            report(rounds, arrival, load)


def in_turns(
    peers: Sequence[str], rounds: int, measured: Callable[[str], F], said: Callable[[F], str]
) -> list[dict[str, F]]:
    """Measure each peer once in every round; whoever comes first changes from round to round."""
    found: list[dict[str, F]] = []
    for number in range(rounds):
        results = {}
        for peer in (*peers[number % len(peers) :], *peers[: number % len(peers)]):
            results[peer] = measured(peer)
            print(f"  round {number + 1} {peer}: {said(results[peer])}", flush=True)
        found.append({peer: results[peer] for peer in peers})
    return found


async def furnish(cluster: Cluster, load: Load) -> None:
    async with connect(cluster.kubeconfig) as client:
        await cluster_load.furnish(client, load)


def shown(found: Figures) -> str:
    calls = {name: round(count, 2) for name, count in sorted(found.requests.items())}
    cpu = {name: round(spent, 2) for name, spent in found.cpu.items()}
    speed = f"{found.per_second:.1f} pods/s, middle {found.middle_per_second:.1f}"
    return f"{speed}, CPU {json.dumps(cpu)}, requests {json.dumps(calls)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", nargs="+", choices=ALL_PEERS, default=PEERS)
    parser.add_argument("--arrivals", nargs="+", choices=ARRIVALS, default=ARRIVALS)
    parser.add_argument("--policies", action="store_true")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--claims", type=int, default=400)
    parser.add_argument("--pods", type=int, default=2_000)
    arguments = parser.parse_args()
    load = Load(arguments.nodes, arguments.claims, arguments.pods)
    measure(arguments, load)


if __name__ == "__main__":
    main()
