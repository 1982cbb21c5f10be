"""10,000 pods in a store, against the same pods in the official client's informer.

    python -m bench.kube_store [--pods 10000] [--rounds 3] [--kubeconfig FILE]

Both read the same real API server, in turns, each in a process of its own. `import` is the
memory after the imports, `synced` with all pods in; seconds run from the start of the list until
everything is there. The store's projection keeps what a queue accounting needs of a pod; the
informer has no projections, which is most of the difference, and the point.

Without --kubeconfig an API server and etcd of its own are started and filled: about a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

PEERS = ("store", "informer")
NAMESPACE = "bench-kube-store"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one process measured of itself."""

    import_mib: float
    synced_mib: float
    peak_mib: float
    seconds: float
    objects: int

    @property
    def growth_mib(self) -> float:
        return self.synced_mib - self.import_mib


def rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_store(kubeconfig: Path) -> Figures:
    from kube.calls.api import connect
    from kube.objects import JsonObject
    from kube.resources import Resource
    from kube.stores.api import Store

    @dataclass(frozen=True, slots=True)
    class PodView:
        """What the accounting of queues needs of a pod."""

        namespace: str
        name: str
        uid: str
        node: str
        phase: str
        queue: str
        claims: tuple[str, ...]

    def project(pod: JsonObject) -> PodView:
        metadata, spec = pod["metadata"], pod["spec"]
        return PodView(
            namespace=sys.intern(metadata["namespace"]),
            name=metadata["name"],
            uid=metadata["uid"],
            node=sys.intern(spec.get("nodeName", "")),
            phase=sys.intern(pod["status"]["phase"]),
            queue=sys.intern(metadata.get("labels", {}).get("moorage.dev/queue", "")),
            claims=tuple(claim["resourceClaimName"] for claim in spec.get("resourceClaims", ())),
        )

    async def run() -> Figures:
        imported = rss_mib()
        async with connect(kubeconfig) as client:
            pods = Resource("", "v1", "pods").select(NAMESPACE)
            indexes = {"claim": lambda pod: pod.claims, "queue": lambda pod: (pod.queue,)}
            store = Store(client, pods, project, indexes=indexes)
            began = time.perf_counter()
            task = asyncio.create_task(store.run())
            await store.synced.wait()
            seconds = time.perf_counter() - began
            figures = Figures(imported, rss_mib(), peak_mib(), seconds, len(store))
            task.cancel()
            await asyncio.wait([task])
            return figures

    return asyncio.run(run())


def run_informer(kubeconfig: Path) -> Figures:
    kubernetes: Any = import_module("kubernetes")
    core = kubernetes.client.CoreV1Api
    imported = rss_mib()
    kubernetes.config.load_kube_config(str(kubeconfig))
    informer = kubernetes.informer.SharedInformer(core().list_namespaced_pod, NAMESPACE)
    began = time.perf_counter()
    informer.start()
    # Its resourceVersion is set when its first list is in; it has no signal of its own.
    while informer._resource_version is None:  # noqa: SLF001
        time.sleep(0.005)
    seconds = time.perf_counter() - began
    return Figures(imported, rss_mib(), peak_mib(), seconds, len(informer.cache.list_keys()))


def measured(peer: str, kubeconfig: Path) -> Figures:
    command = [sys.executable, "-m", "bench.kube_store", "--peer", peer]
    done = subprocess.run(
        [*command, "--kubeconfig", str(kubeconfig)], stdout=subprocess.PIPE, text=True, check=True
    )
    return Figures(**json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def filled_server(pods: int) -> Iterator[Path]:
    from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings

    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as folder:
        settings = ClusterSettings(work_dir=Path(folder) / "c", nodes=0, parts=CONTROL_PLANE)
        cluster = Cluster.up(settings)
        try:
            asyncio.run(fill(cluster.kubeconfig, pods))
            yield cluster.kubeconfig
        finally:
            cluster.down(purge=True)


async def fill(kubeconfig: Path, pods: int) -> None:
    from kube.calls.api import connect
    from kube.resources import Resource

    gate = asyncio.Semaphore(32)
    accounts = Resource("", "v1", "serviceaccounts")
    async with connect(kubeconfig) as client, asyncio.TaskGroup() as group:
        namespaces = Resource("", "v1", "namespaces", namespaced=False)
        await client.create(namespaces, {"metadata": {"name": NAMESPACE}})
        # Admission wants the account; there is no controller here that would make it.
        account = {"metadata": {"name": "default", "namespace": NAMESPACE}}
        await client.create(accounts, account)

        async def create(number: int) -> None:
            async with gate:
                await client.create(Resource("", "v1", "pods"), a_pod(number))

        for number in range(pods):
            group.create_task(create(number))


def a_pod(number: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example/team/image:1.2.3",
        "env": [{"name": f"SETTING_{n}", "value": f"value {n}"} for n in range(8)],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "camera"}]},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    labels = {"app": f"app-{number % 50}", "moorage.dev/queue": f"queue-{number % 100}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "camera", "resourceClaimName": f"claim-{number // 5}"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "automountServiceAccountToken": False,
        },
    }


def report(rounds: dict[str, list[Figures]]) -> None:
    middle = {
        peer: {
            name: statistics.median(getattr(figures, name) for figures in found)
            for name in ("objects", "import_mib", "synced_mib", "growth_mib", "peak_mib", "seconds")
        }
        for peer, found in rounds.items()
    }
    print(f"{'':14}" + "".join(f"{peer:>12}" for peer in PEERS) + f"{'ratio':>10}")
    for name, ours in middle["store"].items():
        theirs = middle["informer"][name]
        print(f"{name:14}{ours:12.2f}{theirs:12.2f}{ours / theirs:10.3f}")


def compare(kubeconfig: Path, rounds: int) -> None:
    found: dict[str, list[Figures]] = {peer: [] for peer in PEERS}
    for _ in range(rounds):
        for peer in PEERS:
            found[peer].append(measured(peer, kubeconfig))
    report(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        run = {"store": run_store, "informer": run_informer}[arguments.peer]
        figures = run(arguments.kubeconfig)
        print(json.dumps(asdict(figures)), flush=True)
        os._exit(0)  # The informer's thread is in a read and can only be left behind.
    elif arguments.kubeconfig:
        compare(arguments.kubeconfig, arguments.rounds)
    else:
        with filled_server(arguments.pods) as kubeconfig:
            compare(kubeconfig, arguments.rounds)


if __name__ == "__main__":
    main()
