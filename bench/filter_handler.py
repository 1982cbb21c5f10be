"""How long Filter takes in a large cluster: the handler alone, and over loopback.

    python -m bench.filter_handler [--claims 10000] [--queues 1000] [--names 5000] [--calls 2000]

Twice as many bound pods as claims. Each call is another pod, which shares an allocated claim and
asks for one of its own, and comes with the names of all nodes. `admitted` sends the names back,
`refused` a sentence for each. The handler decodes the body, judges and encodes the answer; over
loopback the server is a process of its own, and the client reads the whole answer.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter, thread_time
from typing import Any, cast

from bench import verdicts
from kube.shapes.reading import JsonObject
from scheduler_plugin.accounting.world import World
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.extender.http_app import ExtenderApp, Limits
from scheduler_plugin.extender.http_server import serving
from scheduler_plugin.extender.kube_scheduler import Extender
from scheduler_plugin.extender.kube_scheduler_lease import KubeSchedulerLease
from scheduler_plugin.extender.listening import Listening
from scheduler_plugin.extender.messages import NotAnswered, decode_filter, encode_filter
from scheduler_plugin.objects.bindings import BinderProtocol
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings, Queue
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.queue_objects import parse_queue
from scheduler_plugin.reclaiming.placement.inventory import Inventory

FULL = "full"
"""A queue whose limit is reached."""

HEADER_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Size:
    """A cluster, and how many pods kube-scheduler asks about."""

    claims: int
    queues: int
    names: int
    calls: int


class KnownWorld:
    """A world that nothing changes, and a Lease that is held."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.inventory = Inventory()
        self.settings: AccountingSettings = world.facts.settings

    def why_not_ready(self) -> str:
        return ""

    async def await_lease(self, seconds: float) -> None:
        """It is ours for ever."""

    def read_pod(self, obj: JsonObject) -> PodView:
        """The watch may not have brought it yet: it is parsed each time."""
        return pod_view(obj, self.settings)

    async def refresh_claim(self, namespace: str, name: str) -> None:
        """Nobody has to: all claims are known."""


def extender(size: Size) -> Extender:
    """The plugin's own, with a large world."""
    world = verdicts.build(size.claims, size.queues)
    world.put_queue(full_queue())
    for number in range(size.calls):
        world.put_claim(verdicts.claim(number, size.queues, allocated=False))
    known = KnownWorld(world)
    clock: Callable[[], datetime] = lambda: verdicts.NOW  # noqa: E731
    cluster, lease = cast(ClusterWorld, known), cast(KubeSchedulerLease, known)
    return Extender(cluster, cast(BinderProtocol, None), lease, clock)


def full_queue() -> Queue:
    share = {"deviceClass": "cam", "quota": 0, "limit": 0}
    spec = {"namespaceSelector": {}, "resources": [share]}
    found = parse_queue({"metadata": {"name": FULL}, "spec": spec})
    assert isinstance(found, Queue), found
    return found


def bodies(size: Size, queue: str = "") -> list[bytes]:
    """Filter calls as kube-scheduler sends them, about pods of the size that pods have."""
    names = [f"node-{number:05d}.example" for number in range(size.names)]
    return [
        json.dumps({"Pod": a_pod(number, size, queue), "Nodes": None, "NodeNames": names}).encode()
        for number in range(size.calls)
    ]


def a_pod(number: int, size: Size, queue: str) -> dict[str, Any]:
    pod: dict[str, Any] = verdicts.pod_object(number, size.queues, bound=False)
    if queue:
        pod["metadata"]["labels"][QUEUE_LABEL] = queue
    environment = [{"name": f"SETTING_{n}", "value": f"value {n}"} for n in range(8)]
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "camera"}]}
    pod["spec"]["containers"] = [
        {"name": "main", "image": "image:1", "env": environment, "resources": resources}
    ]
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return pod | {"status": {"phase": "Pending", "conditions": conditions}}


def handler(answers: Extender) -> Callable[[bytes], bytes]:
    """Bytes in, bytes out, as `http_app` does it."""

    def handle(body: bytes) -> bytes:
        call = decode_filter(body)
        assert not isinstance(call, NotAnswered), call
        return encode_filter(call, answers.filter(call.pod))

    return handle


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds by the clock and of CPU, each in the order of size."""

    wall: list[float]
    cpu: list[float]

    def quantile(self, share: float) -> tuple[float, float]:
        index = min(len(self.wall) - 1, int(share * len(self.wall)))
        return self.wall[index], self.cpu[index]


def timed(handle: Callable[[bytes], bytes], calls: list[bytes]) -> Times:
    """What each call took, after some that nobody counts.

    As in the plugin, the world is not the garbage collector's to look at.
    """
    for body in calls[:200]:
        handle(body)
    gc.collect()
    gc.freeze()
    wall, cpu = [], []
    for body in calls:
        began, began_cpu = perf_counter(), thread_time()
        handle(body)
        cpu.append((thread_time() - began_cpu) * 1000)
        wall.append((perf_counter() - began) * 1000)
    gc.unfreeze()
    return Times(sorted(wall), sorted(cpu))


@contextmanager
def over_loopback(size: Size) -> Iterator[Callable[[bytes], bytes]]:
    """The server as a process, and a connection that is kept."""
    values = (size.claims, size.queues, size.names, size.calls)
    flags = (f"--{name}={v}" for name, v in zip(SIZES, values, strict=True))
    command = (sys.executable, "-m", "bench.filter_handler", "--serve", *flags)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                yield lambda body: exchange(connection, body)
        finally:
            process.terminate()


def exchange(connection: socket.socket, body: bytes) -> bytes:
    head = f"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    answer = b""
    while HEADER_END not in answer:
        answer += connection.recv(2**20)
    headers, _, start = answer.partition(HEADER_END)
    length = int(headers.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    parts, received = [start], len(start)
    while received < length:
        parts.append(connection.recv(2**20))
        received += len(parts[-1])
    return b"".join(parts)


async def serve(size: Size) -> None:
    gc.freeze()
    listening = Listening(host="127.0.0.1", port=0, tls=None)
    # Nobody binds these pods.
    limits = Limits(in_flight=10**9)
    async with serving(ExtenderApp(extender(size), limits), listening, limits) as bound:
        print(bound.port, flush=True)
        await asyncio.wait((bound.server,))


def measure(size: Size) -> None:
    kinds = {"admitted": bodies(size), "refused": bodies(size, FULL)}
    print(
        f"{size.claims} claims, {2 * size.claims} pods, {size.queues} queues,"
        f" {size.names} names; milliseconds"
    )
    print(f"{'':22}{'p50':>8}{'p99':>8}{'CPU p50':>10}{'CPU p99':>10}")
    handle = handler(extender(size))
    for kind, calls in kinds.items():
        check(handle(calls[0]), kind)
        show(f"handler, {kind}", timed(handle, calls))
    with over_loopback(size) as call:
        for kind, calls in kinds.items():
            check(call(calls[0]), kind)
            show(f"loopback, {kind}", timed(call, calls), of_client=True)


def check(answer: bytes, kind: str) -> None:
    """No figure of a call that failed."""
    found = json.loads(answer)
    assert not found["Error"], found["Error"]
    assert bool(found["NodeNames"]) == (kind == "admitted"), kind


def show(what: str, times: Times, *, of_client: bool = False) -> None:
    """Of calls over loopback the CPU is the client's, and of no interest."""
    middle, slow = times.quantile(0.5), times.quantile(0.99)
    cpu = "" if of_client else f"{middle[1]:10.3f}{slow[1]:10.3f}"
    print(f"{what:22}{middle[0]:8.3f}{slow[0]:8.3f}{cpu}", flush=True)


SIZES = {"claims": 10_000, "queues": 1_000, "names": 5_000, "calls": 2_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = Size(*(getattr(arguments, name) for name in SIZES))
    if not arguments.serve:
        measure(size)
        return
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(size))


if __name__ == "__main__":
    main()
