"""For how long thousands of waiting pods hold up everybody else at a time.

    python -m bench.waiting_loop [--waiting 5000] [--queues 1000] [--slices 5000] [--share 1]
                                 [--rounds 20]

The keeper of those who wait runs in its event loop, beside something that counts how long it was
not its turn: after a change that all pods may depend on (`review`), after a Queue changed
(`queue`), and while a ResourceSlice changes as a claim asks for all devices of a class (`slice`).
Half of the pods wait at the gate, half were refused without one; as many as `--share` use a claim,
so that with more than one there is a line for each claim; and no queue has room. The baseline is
the same done in one go, and for the slice, to go through all.
The garbage collector is off: what it costs depends on what else the process holds.

Each hold is the lesser of what two clocks say. By the wall others count that had the core
meanwhile; and a thread's CPU clock catches up late after that: steps of 0.07 ms were seen for which
it went on by 8.6 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic, perf_counter, thread_time
from typing import Any, cast

from bench import verdicts
from binder.gates.apiserver_gate_writes import GateWrites
from binder.gates.apiserver_gates import GateWriter
from kube.calls.api import ApiClient
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import OtherChanged, QueueChanged
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.claims import ClaimView, ClassName
from scheduler_plugin.objects.devices.devices import SliceView
from scheduler_plugin.objects.names import (
    ADMITTED_CONDITION,
    QUEUE_LABEL,
    QUOTA_GATE,
    Queue,
    QueueName,
)
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.queue_objects import parse_queue
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.order.aging import FIRST_PERIOD
from tests.fakes.fence import FakeFence

NOW = datetime(2026, 11, 21, tzinfo=UTC)
QUIET_SECONDS = 0.5
"""So long nothing is done when all that a change means has been done."""


@dataclass
class KnownPods:
    """A world that nothing is read into, and nothing written from: no pod fits."""

    world: World
    inventory: Inventory = field(default_factory=Inventory)


def full_queue(number: int, limit: int = 0) -> Queue:
    share = {"deviceClass": "cam", "quota": 0, "limit": limit}
    spec = {"namespaceSelector": {}, "resources": [share]}
    found = parse_queue({"metadata": {"name": f"full-{number}"}, "spec": spec})
    assert isinstance(found, Queue), found
    return found


def waiting_pod(number: int, queues: int, share: int) -> PodView:
    """One of two waits at the gate and was told why."""
    gated = number % 2 == 0
    name, claim = f"waiting-{number}", number // share
    labels = {QUEUE_LABEL: f"full-{claim % queues}"}
    condition = {"type": ADMITTED_CONDITION, "status": "False", "reason": "OverLimit"}
    obj = {
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": labels},
        "spec": {
            "schedulerName": "moorage",
            "schedulingGates": [{"name": QUOTA_GATE}] if gated else [],
            "resourceClaims": [{"name": "cam", "resourceClaimName": f"own-{claim}"}],
        },
        "status": {"conditions": [condition] if gated else []},
    }
    return pod_view(json.loads(json.dumps(obj)), verdicts.SETTINGS)


def claim_for_all() -> ClaimView:
    request = {"name": "cam", "exactly": {"deviceClassName": "cam", "allocationMode": "All"}}
    obj = {
        "metadata": {"namespace": "default", "name": "all", "uid": "all"},
        "spec": {"devices": {"requests": [request]}},
    }
    return claim_view(json.loads(json.dumps(obj)), queue_label=QUEUE_LABEL)


def a_slice(number: int, devices: int = 4) -> SliceView:
    counts = tuple((("cam", f"cam-{number}-{n}"), 1) for n in range(devices))
    return SliceView(
        name=f"slice-{number}", driver="moorage.dev", node=f"node-{number}", counts=counts
    )


@dataclass
class Scene:
    """Everybody waits, and is known to."""

    waiting: int
    queues: int
    slices: int
    share: int
    world: World = field(init=False)
    refusals: RefusedPods = field(default_factory=RefusedPods)

    def __post_init__(self) -> None:
        self.world = verdicts.build(0, 0)
        for number in range(self.queues):
            self.world.put_queue(full_queue(number))
        for number in range(self.slices):
            self.world.put_slice(a_slice(number))
        self.world.put_claim(claim_for_all())
        for number in range(self.waiting):
            self.world.put_claim(verdicts.claim(number, self.queues, allocated=False))
            pod = waiting_pod(number, self.queues, self.share)
            self.world.put_pod(pod)
            if not pod.gates:
                self.refusals.answered(pod.uid, refused=True)
        writes = GateWrites(
            cast(ApiClient, None), cast(ClusterWorld, KnownPods(self.world)), FakeFence()
        )
        self.writer = GateWriter(writes, self.refusals, lambda: NOW)

    def review(self, _: int) -> None:
        self.writer.changed(OtherChanged())

    def queue(self, number: int) -> None:
        self.world.put_queue(full_queue(0, limit=number % 2))
        self.world.put_queue(full_queue(0))
        self.writer.changed(QueueChanged(QueueName("full-0")))

    def change_slice(self, number: int) -> None:
        if self.world.put_slice(a_slice(0, devices=5 + number % 2)):
            self.writer.changed(OtherChanged())


class Lap:
    """Seconds since it began, by the clock that says less."""

    def __init__(self) -> None:
        self._cpu, self._wall = thread_time(), perf_counter()

    def seconds(self) -> float:
        return min(thread_time() - self._cpu, perf_counter() - self._wall)


class Holds:
    """How long it was somebody else's turn each time, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.worked_at = 0.0

    async def watch(self) -> None:
        while True:
            lap = Lap()
            await asyncio.sleep(0)
            held = lap.seconds()
            self.longest = max(self.longest, held)
            if held > 0.0002:
                self.worked_at = monotonic()

    async def longest_of(self, change: Callable[[int], None], number: int) -> float:
        """The longest until nothing is done any more; the change itself counts."""
        self.longest = 0.0
        await asyncio.sleep(0)
        lap = Lap()
        change(number)
        own = lap.seconds()
        await self.quiet()
        return max(own, self.longest)

    async def quiet(self) -> None:
        """Wait until nothing is done any more."""
        self.worked_at = monotonic()
        while monotonic() - self.worked_at < QUIET_SECONDS:  # noqa: ASYNC110  It never ends.
            await asyncio.sleep(0.05)


async def measure(scene: Scene, rounds: int) -> dict[str, list[float]]:
    holds = Holds()
    tasks = [asyncio.create_task(scene.writer.run()), asyncio.create_task(holds.watch())]
    while scene.writer.why_unknown():  # noqa: ASYNC110  The next turns begin the shift.
        await asyncio.sleep(0)
    await holds.quiet()
    changes: dict[str, Callable[[int], None]] = {
        "review": scene.review,
        "queue": scene.queue,
        "slice": scene.change_slice,
    }
    found = {
        name: [await holds.longest_of(change, number) for number in range(rounds)]
        for name, change in changes.items()
    }
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    return found


def in_one_go(scene: Scene) -> dict[str, float]:
    keeper = GateKeeper(scene.world, scene.refusals, first_period=FIRST_PERIOD)
    keeper.decide(NOW, 0.0)

    def timed(act: Callable[[], Any]) -> float:
        lap = Lap()
        act()
        return lap.seconds()

    def review() -> None:
        keeper.note(OtherChanged())
        keeper.decide(NOW, 1.0)

    def queue() -> None:
        keeper.note(QueueChanged(QueueName("full-0")))
        keeper.decide(NOW, 2.0)

    def go_through_all() -> None:
        view = scene.world.facts.catalog.class_named(ClassName("cam"))
        assert view is not None
        slices = [scene.world.facts.catalog.slice_named(f"slice-{n}") for n in range(scene.slices)]
        sum(n for found in slices if found for (made_of, _), n in found.counts if made_of == "cam")

    return {"review": timed(review), "queue": timed(queue), "slice": 2 * timed(go_through_all)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=5_000)
    parser.add_argument("--queues", type=int, default=1_000)
    parser.add_argument("--slices", type=int, default=5_000)
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    scene = Scene(arguments.waiting, arguments.queues, arguments.slices, arguments.share)
    gc.collect()
    gc.disable()
    found = asyncio.run(measure(scene, arguments.rounds))
    baselines = in_one_go(scene)
    print(
        f"{scene.waiting} pods wait in {scene.queues} queues, {scene.share} a claim,"
        f" {scene.slices} slices;"
        f" {arguments.rounds} rounds; ms held at a time"
    )
    print(f"{'':8}{'median':>9}{'longest':>9}{'in one go':>11}{'ratio':>8}")
    for name, times in found.items():
        longest, baseline = max(times), baselines[name]
        median = statistics.median(times) * 1000
        print(
            f"{name:8}{median:9.2f}{longest * 1000:9.2f}{baseline * 1000:11.2f}"
            f"{longest / baseline:8.3f}"
        )


if __name__ == "__main__":
    main()
