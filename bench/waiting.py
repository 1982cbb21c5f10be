"""What pods that wait for quota cost those that fit, and how soon they start when there is room.

    PYTHONPATH=deploy/local python -m bench.waiting [--rounds N] [--waiting 5000]

The load of `bench.throughput` is bound beside nobody who waits (`none`), beside pods that wait at
the gate (`gate`), beside as many without a gate, which kube-scheduler tries again and again
(`retry`), and beside those where kube-scheduler may back off for a minute (`rested`). Where it
looks at all nodes for each pod (`percentageOfNodesToScore: 100`, as the chart has it) they are
`none-all` and `retry-all`. Then the limit of one of the full queues is raised by 100: how long
until the first of its pods is bound, and the hundredth. What kube-scheduler itself takes for
refused pods shows an extender that does nothing else: beside nobody (`least`), and beside as many
pods that it refuses (`least-retry`). Each is measured once in every round, in turns; ratios are
medians of the rounds' ratios.

Those that wait ask for devices of a class that is there, and were refused for their queue. Those
that fit wait for a class of their own: creating it lets kube-scheduler have them.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bench import cluster_load, measured_cluster, throughput
from bench.cluster_load import Load
from bench.process_figures import cpu_seconds
from kube.calls.api import ApiClient, connect
from kube.kinds import CLAIMS, CLASSES, NAMESPACES, PODS
from local_cluster.api import Cluster
from scheduler_plugin.objects.names import GROUP, QUEUE_KIND, QUEUE_LABEL, QUOTA_GATE, VERSION

NONE, GATE, RETRY, RESTED = "none", "gate", "retry", "rested"
LEAST, LEAST_RETRY = "least", "least-retry"
NONE_ALL, RETRY_ALL = "none-all", "retry-all"
PEERS = (NONE, GATE, RETRY, RESTED, LEAST, LEAST_RETRY, NONE_ALL, RETRY_ALL)
NOBODY = frozenset({NONE, LEAST, NONE_ALL})
TRIED = frozenset({RETRY, RESTED, LEAST_RETRY, RETRY_ALL})
ALL_NODES = {"percentageOfNodesToScore": 100}
SETTINGS = {RESTED: {"podMaxBackoffSeconds": 60}, NONE_ALL: ALL_NODES, RETRY_ALL: ALL_NODES}
BASELINES = (
    (GATE, NONE),
    (RETRY, NONE),
    (RESTED, NONE),
    (LEAST_RETRY, LEAST),
    (NONE_ALL, NONE),
    (RETRY_ALL, NONE_ALL),
    (RETRY_ALL, NONE),
)
NAMESPACE = "bench-waiting"
WAITING_CLASS = "bench-waiting"
FULL_QUEUES = 10
RAISED_BY = 100
MOST_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Figures:
    """One run: pods bound per second, and seconds after a limit was raised; NaN for too long."""

    per_second: float
    cpu: float
    first_seconds: float = float("nan")
    all_seconds: float = float("nan")
    started: int = 0


def a_share(limit: int) -> dict[str, Any]:
    return {"deviceClass": WAITING_CLASS, "quota": 0, "limit": limit}


def a_full_queue(number: int) -> dict[str, Any]:
    metadata = {"name": full_queue(number)}
    spec = {"namespaceSelector": {}, "resources": [a_share(0)]}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": QUEUE_KIND,
        "metadata": metadata,
        "spec": spec,
    }


def full_queue(number: int) -> str:
    return f"full-{number % FULL_QUEUES}"


def a_waiting_pod(number: int, peer: str) -> dict[str, Any]:
    """One that has a claim of its own."""
    body = cluster_load.a_pod(number, Load(0, 1 << 30, 0))
    body["metadata"]["namespace"] = NAMESPACE
    body["metadata"]["labels"][QUEUE_LABEL] = full_queue(number)
    if peer == GATE:
        body["spec"]["schedulingGates"] = [{"name": QUOTA_GATE}]
    return body


async def furnish(cluster: Cluster, load: Load) -> None:
    async with connect(cluster.kubeconfig) as client:
        await cluster_load.furnish(client, load)
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        account = {"metadata": {"name": "default", "namespace": NAMESPACE}}
        await client.create(cluster_load.ACCOUNTS, account)
        await client.create(CLASSES, cluster_load.a_class(WAITING_CLASS))
        for number in range(FULL_QUEUES):
            await client.create(cluster_load.QUEUE_OBJECTS, a_full_queue(number))


async def line_up(cluster: Cluster, client: ApiClient, peer: str, waiting: int) -> None:
    """Pods that wait, until everything has been said about them."""
    claims = (cluster_load.a_claim(n, NAMESPACE, WAITING_CLASS) for n in range(waiting))
    await cluster_load.create_all(client, CLAIMS, claims)
    pods = (a_waiting_pod(n, peer) for n in range(waiting))
    await cluster_load.create_all(client, PODS, pods)
    measured_cluster.until_steady(lambda: measured_cluster.api_requests(cluster), seconds=3.0)


async def run(cluster: Cluster, peer: str, load: Load, waiting: int) -> Figures:
    async with connect(cluster.kubeconfig) as client:
        extender = throughput.LEAST if peer in (LEAST, LEAST_RETRY) else throughput.PLUGIN
        with throughput.extended_by(cluster, extender, **SETTINGS.get(peer, {})) as pid:
            if peer not in NOBODY:
                await line_up(cluster, client, peer, waiting)
            await cluster_load.pile_up(client, load)
            refused = load.pods + (waiting if peer in TRIED else 0)
            cluster.wait_until(
                "all pods wait",
                lambda: measured_cluster.unschedulable_pods(cluster) == refused,
                seconds=180,
            )
            before = cpu_seconds(pid or 0)
            speed = await bound_per_second(cluster, client, load)
            cpu = (cpu_seconds(pid or 0) - before) / load.pods * 1000
            found = Figures(speed, cpu)
            if peer not in NOBODY and extender == throughput.PLUGIN:
                found = Figures(speed, cpu, *await raise_a_limit(client))
        await throughput.withdraw(client)
        for namespace in (cluster_load.NAMESPACE, NAMESPACE):
            await throughput.clear(cluster, client, namespace)
    return found


async def bound_per_second(cluster: Cluster, client: ApiClient, load: Load) -> float:
    """How fast the pods are bound that fit; of those that came through in time."""
    async with throughput.watched_bindings(client, cluster_load.NAMESPACE, load.pods) as seen:
        await cluster_load.release(client)
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST_SECONDS):
                await measured_cluster.while_scheduler_runs(cluster, seen.enough.wait())
    print(f"  {len(seen.times)} of {load.pods} pods bound", flush=True)
    return (len(seen.times) - 1) / (seen.times[-1] - seen.times[0])


async def raise_a_limit(client: ApiClient) -> tuple[float, float, int]:
    """Seconds until the first pod is bound and until all that fit are, and how many are bound."""
    async with throughput.watched_bindings(client, NAMESPACE, RAISED_BY) as seen:
        begun = time.perf_counter()
        await set_limit(client, RAISED_BY)
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST_SECONDS):
                await seen.enough.wait()
                # Whoever comes after these came through without room.
                await asyncio.sleep(2.0)
    await set_limit(client, 0)
    after = [moment - begun for moment in seen.times]
    return _nth(after, 1), _nth(after, RAISED_BY), len(after)


def _nth(times: Sequence[float], number: int) -> float:
    return times[number - 1] if len(times) >= number else float("nan")


async def set_limit(client: ApiClient, limit: int) -> None:
    path = cluster_load.QUEUE_OBJECTS.at(full_queue(0))
    await client.merge_patch(path, {"spec": {"resources": [a_share(limit)]}})


def measure(
    peers: Sequence[str], rounds: int, load: Load, waiting: int, gates: Sequence[str] = ()
) -> list[dict[str, Figures]]:
    switched = {name: value == "true" for name, _, value in (gate.partition("=") for gate in gates)}
    with measured_cluster.control_plane(load.nodes, feature_gates=switched) as cluster:
        asyncio.run(furnish(cluster, load))

        def measured(peer: str) -> Figures:
            return asyncio.run(run(cluster, peer, load, waiting))

        return throughput.in_turns(peers, rounds, measured, str)


def report(rounds: Sequence[dict[str, Figures]], load: Load, waiting: int) -> None:
    print(f"{load.pods} pods that fit, {waiting} that wait, {len(rounds)} rounds")
    print(f"{'':12}{'pods/s':>8}{'CPU ms a pod':>14}{'first s':>10}{'100th s':>10}{'started':>10}")
    for peer in rounds[0]:
        runs = [found[peer] for found in rounds]
        speed = statistics.median(r.per_second for r in runs)
        cpu = statistics.median(r.cpu for r in runs)
        first = statistics.median(r.first_seconds for r in runs)
        last = statistics.median(r.all_seconds for r in runs)
        started = "/".join(str(r.started) for r in runs)
        print(f"{peer:12}{speed:8.1f}{cpu:14.2f}{first:10.2f}{last:10.2f}{started:>10}")
    for peer, alone in BASELINES:
        if peer in rounds[0] and alone in rounds[0]:
            ratios = [r[peer].per_second / r[alone].per_second for r in rounds]
            each = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
            print(f"{peer} / {alone}: {statistics.median(ratios):.3f} ({each})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=(NONE, GATE, RETRY))
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--claims", type=int, default=200)
    parser.add_argument("--pods", type=int, default=1_000)
    parser.add_argument("--waiting", type=int, default=5_000)
    parser.add_argument("--feature-gates", nargs="+", default=(), metavar="NAME=false")
    arguments = parser.parse_args()
    load = Load(arguments.nodes, arguments.claims, arguments.pods)
    rounds = measure(
        arguments.peers, arguments.rounds, load, arguments.waiting, arguments.feature_gates
    )
    report(rounds, load, arguments.waiting)


if __name__ == "__main__":
    main()
