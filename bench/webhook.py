"""How long the webhook takes for a pod with a claim, at a steady rate, and one that does nothing.

    python -m bench.webhook [--claims 10000] [--rate 200] [--seconds 10] [--rounds 5]

A real API server holds the claims and 1,000 queues; the webhook is a process of its own, which
watches them, and is asked over TLS on connections that stay open, as the API server does. The
do-nothing webhook runs on the same server and reads nothing but the review. Both take turns.
A request counts from the moment that it is due: what waits for a free connection waits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop

from kube.calls.api import connect
from kube.http_server import Ending, serving
from kube.live_tls import LiveTls, TlsFiles, show_files
from kube.resources import Resource
from local_cluster.api import CONTROL_PLANE, Certificate, Cluster, ClusterSettings
from scheduler_plugin.objects.names import QUEUE_LABEL
from tests.e2e.webhook.installation import WebhookProcess, install
from webhook.http_app import http_app
from webhook.reviews import Answer, Response, Review
from webhook.serve_main import CIPHERS

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = "bench"
QUEUES = 1_000
CONNECTIONS = 4
TARGET_MS = 5.0
PEERS = ("webhook", "nothing")
TICKS = os.sysconf("SC_CLK_TCK")


class DoNothing:
    """Allows everything."""

    def why_not_ready(self) -> str:
        return ""

    async def validate(self, review: Review) -> Answer:
        return Answer(response=Response(uid=review.uid, allowed=True))

    async def mutate(self, review: Review) -> Answer:
        return await self.validate(review)

    async def warn(self, review: Review) -> Answer:
        return await self.validate(review)


@dataclass(frozen=True)
class Round:
    """One peer, one round. Latencies in milliseconds, CPU in milliseconds a request."""

    p50: float
    p99: float
    worst: float
    cpu: float
    rss_mib: float


def a_claim(number: int) -> dict[str, Any]:
    request = {"name": "cam", "exactly": {"deviceClassName": "onvif"}}
    labels = {QUEUE_LABEL: f"queue-{number % QUEUES}"}
    return {
        "metadata": {"name": f"claim-{number}", "namespace": NAMESPACE, "labels": labels},
        "spec": {"devices": {"requests": [request]}},
    }


def a_queue(number: int) -> dict[str, Any]:
    resources = [{"deviceClass": "onvif", "quota": 10}]
    parent = {"parent": f"queue-{number - 1}"} if number % 6 else {}
    return {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": f"queue-{number}"},
        "spec": {**parent, "namespaceSelector": {}, "resources": resources},
    }


def a_review(number: int, claims: int) -> bytes:
    """Of a pod as the API server has it: defaults, tolerations and managed fields included."""
    claim = f"claim-{number * 7919 % claims}"
    container = {
        "name": "main",
        "image": "registry.example/team/image:1.2.3",
        "env": [{"name": f"SETTING_{n}", "value": f"value {n}"} for n in range(8)],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "camera"}]},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    fields: dict[str, Any] = {
        f"f:field-{n}": {f"f:part-{m}": {} for m in range(5)} for n in range(10)
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": NAMESPACE,
            "uid": f"uid-{number}",
            "labels": {"app": "camera", QUEUE_LABEL: f"queue-{number % QUEUES}"},
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "camera", "resourceClaimName": claim}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "schedulerName": "moorage",
            "tolerations": [{"key": f"taint-{n}", "operator": "Exists"} for n in range(2)],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
    request = {
        "uid": f"review-{number}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "name": f"pod-{number}",
        "namespace": NAMESPACE,
        "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
        "object": pod,
        "oldObject": None,
    }
    envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(envelope).encode()


async def fill(kubeconfig: Path, claims: int) -> None:
    group = "resource.k8s.io"
    classes = Resource(group, "v1", "deviceclasses", namespaced=False)
    namespaces = Resource("", "v1", "namespaces", namespaced=False)
    queues = Resource("moorage.dev", "v1alpha1", "queues", namespaced=False)
    gate = asyncio.Semaphore(32)

    async with connect(kubeconfig) as client, asyncio.TaskGroup() as tasks:

        async def create(resource: Resource, body: dict[str, Any]) -> None:
            async with gate:
                await client.create(resource, body)

        await create(namespaces, {"metadata": {"name": NAMESPACE}})
        await create(classes, {"metadata": {"name": "onvif"}, "spec": {}})
        for number in range(QUEUES):
            tasks.create_task(create(queues, a_queue(number)))
        for number in range(claims):
            tasks.create_task(create(Resource(group, "v1", "resourceclaims"), a_claim(number)))


async def measured(
    process: WebhookProcess | DoNothingProcess, bodies: list[bytes], rate: float
) -> Round:
    """Ask at a steady rate, whether the answers keep up or not."""
    due: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()
    times: list[float] = []
    cpu = cpu_seconds(process.pid)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(ask(process, due, times))
        start = perf_counter()
        for number, body in enumerate(bodies):
            await asyncio.sleep(start + number / rate - perf_counter())
            due.put_nowait((perf_counter(), body))
        for _ in range(CONNECTIONS):
            due.put_nowait(None)
    times.sort()
    return Round(
        p50=times[len(times) // 2] * 1e3,
        p99=times[len(times) * 99 // 100] * 1e3,
        worst=times[-1] * 1e3,
        cpu=(cpu_seconds(process.pid) - cpu) / len(bodies) * 1e3,
        rss_mib=rss_mib(process.pid),
    )


async def ask(
    process: WebhookProcess | DoNothingProcess,
    due: asyncio.Queue[tuple[float, bytes] | None],
    times: list[float],
) -> None:
    """One connection: sends what is due, and reads the whole answer."""
    context = ssl.create_default_context(cafile=process.certificate.ca)
    reader, writer = await asyncio.open_connection(process.host, process.port, ssl=context)
    while (item := await due.get()) is not None:
        since, body = item
        head = (
            "POST /validate?timeout=5s HTTP/1.1\r\nHost: w\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        headers = await reader.readuntil(b"\r\n\r\n")
        length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        times.append(perf_counter() - since)
        if b'"allowed":true' not in answer:
            raise RuntimeError(answer.decode())
    writer.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20


@dataclass(frozen=True)
class DoNothingProcess:
    """The peer, on the same server."""

    host: str
    port: int
    certificate: Certificate
    pid: int


@contextmanager
def do_nothing(webhook: WebhookProcess) -> Iterator[DoNothingProcess]:
    port = webhook.port + 1
    certificate = webhook.certificate
    files = (str(certificate.certificate), str(certificate.key))
    argv = [sys.executable, "-m", "bench.webhook", "--do-nothing", webhook.host, str(port), *files]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield DoNothingProcess(webhook.host, port, certificate, process.pid)
        finally:
            process.kill()


async def serve_nothing(host: str, port: int, certificate: Path, key: Path) -> None:
    tls = LiveTls(ciphers=CIPHERS)
    show_files(tls, TlsFiles(certificate, key))
    app = http_app(DoNothing())
    async with serving(app, (host, port), tls=tls.context, ending=Ending(1)) as bound:
        print("listening", flush=True)
        await bound.server


@contextmanager
def filled_server(claims: int) -> Iterator[Cluster]:
    settings = ClusterSettings(
        work_dir=ROOT / f".cluster-bench-webhook-{os.getpid()}",
        nodes=0,
        parts=CONTROL_PLANE,
        audit=False,
    )
    cluster = Cluster.up(settings)
    try:
        install(cluster)
        asyncio.run(fill(cluster.kubeconfig, claims))
        yield cluster
    finally:
        cluster.down(purge=True)


def compare(cluster: Cluster, arguments: argparse.Namespace) -> None:
    webhook = WebhookProcess(cluster)
    started = perf_counter()
    webhook.start()
    try:
        webhook.wait_ready()
        ready = perf_counter() - started
        with do_nothing(webhook) as nothing:
            rounds = take_turns({"webhook": webhook, "nothing": nothing}, arguments)
    finally:
        webhook.kill()
    report(rounds, ready, arguments)


def take_turns(
    peers: dict[str, WebhookProcess | DoNothingProcess], arguments: argparse.Namespace
) -> dict[str, list[Round]]:
    numbers = count()
    requests = int(arguments.rate * arguments.seconds)
    rounds: dict[str, list[Round]] = {name: [] for name in peers}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for _ in range(arguments.rounds):
            for name, peer in peers.items():
                bodies = [a_review(next(numbers), arguments.claims) for _ in range(requests)]
                rounds[name].append(runner.run(measured(peer, bodies, arguments.rate)))
    return rounds


def report(rounds: dict[str, list[Round]], ready: float, arguments: argparse.Namespace) -> None:
    size = len(a_review(0, arguments.claims))
    print(f"{arguments.claims} claims, {QUEUES} queues, {arguments.rate:.0f} reviews/s of {size} B")
    print(f"start to ready: {ready:.2f} s; load average {os.getloadavg()[0]:.1f}")
    print(f"{'median of rounds':20}" + "".join(f"{name:>10}" for name in PEERS) + f"{'ratio':>8}")
    units = {"p50": "ms", "p99": "ms", "worst": "ms", "cpu": "ms/review", "rss_mib": ""}
    for field, unit in units.items():
        ours, theirs = (
            statistics.median(getattr(found, field) for found in rounds[name]) for name in PEERS
        )
        print(f"{f'{field} {unit}':20}{ours:10.3f}{theirs:10.3f}{ours / theirs:8.2f}")
    p99 = statistics.median(found.p99 for found in rounds["webhook"])
    print(f"p99 {'reaches' if p99 <= TARGET_MS else 'MISSES'} the target of {TARGET_MS} ms")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--claims", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--do-nothing", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.do_nothing:
        host, port, certificate, key = arguments.do_nothing
        uvloop.run(serve_nothing(host, int(port), Path(certificate), Path(key)))
        return
    with filled_server(arguments.claims) as cluster:
        compare(cluster, arguments)


if __name__ == "__main__":
    main()
