"""How long the decision takes who has to go, and its longest step.

10,000 claims of 1,000 queues, all over their quotas, with one device each; 1,000 pods wait; 5,000
nodes. `limits`: who leaves room below a limit. `devices`: the same, and a node and a device then.
`begin` is what a cycle finds out once, the shares of all queues; `first` is its first pod, `next`
each of those after it. Collecting garbage, which comes between, is left out. `nothing` is the
do-nothing baseline: the verdict on one pod.

python -m bench.reclaim [--nodes 20000 --each 8]
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import judge
from scheduler_plugin.objects.nodes import node_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.missed_nodes import LeftOut, MissedNodes
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.node_placements import NodePlacements
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from scheduler_plugin.reclaiming.placements import LimitsOnly, Placements
from scheduler_plugin.reclaiming.targets import Decision, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_result,
    a_world,
    an_allocated_claim,
    put,
)
from tests.scheduler_plugin.reclaiming.devices_builders import a_node_object, a_slice_object

QUEUES, CLAIMS, WAITING = 1_000, 10_000, 1_000
ROUNDS, SERVED = 5, 100
END = ""


def a_busy_world(nodes: int, each: int) -> World:
    """Half of the queues use everything, below ten parents; the others wait for their quotas."""
    world = a_world(a_queue("root", onvif=(CLAIMS, CLAIMS)))
    for number in range(10):
        put(world, a_queue(f"team{number}", parent="root", onvif=(CLAIMS // 10, -1)))
    for number in range(QUEUES):
        quota = 1 if number % 2 else 2 * CLAIMS // QUEUES
        put(world, a_queue(f"q{number}", parent=f"team{number % 10}", onvif=(quota, -1)))
    for number in range(CLAIMS):
        queue, node = f"q{(number % (QUEUES // 2)) * 2 + 1}", f"n{number % nodes}"
        results = [a_result(pool=node, device=f"d{number // nodes % each}")]
        put(world, an_allocated_claim(f"c{number}", f"p{number}", queue=queue, results=results))
        put(world, a_pod(f"p{number}", queue=queue, claims=[f"c{number}"], node=node))
    return world


def those_who_wait(world: World, count: int) -> list[PodView]:
    pods = []
    for number in range(count):
        pod = a_pod(f"w{number}", queue=f"q{number % (QUEUES // 2) * 2}", claims=[f"w{number}"])
        put(world, a_claim(f"w{number}"), pod)
        pods.append(pod)
    return pods


def a_stock(world: World, nodes: int, each: int) -> Inventory:
    """All nodes, each with some devices, and what runs there."""
    inventory = Inventory()
    for number in range(nodes):
        name = f"n{number}"
        inventory.nodes.put_node(node_view(a_node_object(name, allocatable={"pods": "110"})))
        devices = [f"d{d}" for d in range(each)]
        found = a_slice_object(*devices, node=name, metadata={"name": name})
        inventory.devices.put_slice(published_slice(found))
    for pod in world.facts.pods():
        if pod.on_node is not None:
            inventory.nodes.put_pod(pod.on_node)
    return inventory


def a_supply(world: World, inventory: Inventory) -> Placements:
    return NodePlacements(world, inventory, NONE_EXCLUDED, LeftOut(world, MissedNodes(), NOW))


@dataclass
class Times:
    """CPU time in ms: of what began, of first and later pods; and the longest step of all."""

    begins: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    nexts: list[float] = field(default_factory=list)
    longest: float = 0.0

    def timed(self, steps: Iterator[Decision | None]) -> tuple[Decision | None, float]:
        """What came of it in the end, and all its CPU time."""
        total, found = 0.0, None
        while True:
            began = time.process_time()
            step = next(steps, END)
            took = 1000 * (time.process_time() - began)
            total, self.longest = total + took, max(self.longest, took)
            if isinstance(step, str):
                return found, total
            found = step


def measure(
    name: str, world: World, pods: list[PodView], placements: Callable[[], Placements]
) -> None:
    times, taken = Times(), 0
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        cycle = Cycle(world, NOW, NONE_EXCLUDED, placements())
        begin = 1000 * (time.process_time() - began)
        times.begins.append(begin + times.timed(cycle.prepare(pods))[1])
        for number, pod in enumerate(pods[:SERVED]):
            found, took = times.timed(cycle.steps(pod))
            taken += isinstance(found, Targets)
            (times.nexts if number else times.firsts).append(took)
    print(
        f"{name:8} begin {median(times.begins):6.2f} ms   first {median(times.firsts):6.2f} ms"
        f"   next {median(times.nexts):6.2f} ms   longest step {times.longest:6.2f} ms"
        f"   {taken // ROUNDS} of {SERVED} served"
    )


def baseline(world: World, pod: PodView) -> None:
    times = []
    for _ in range(1000):
        began = time.perf_counter()
        judge(pod, world.facts.claims_of(pod), world)
        times.append(1000 * (time.perf_counter() - began))
    print(f"nothing  {median(times):.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--each", type=int, default=2)
    options = parser.parse_args()
    world = a_busy_world(options.nodes, options.each)
    pods = those_who_wait(world, WAITING)
    inventory = a_stock(world, options.nodes, options.each)
    gc.collect()
    gc.freeze()
    gc.disable()
    print(f"{options.nodes} nodes x {options.each} devices, {CLAIMS} claims, {WAITING} pods wait")
    baseline(world, pods[0])
    measure("limits", world, pods, LimitsOnly)
    measure("devices", world, pods, lambda: a_supply(world, inventory))


if __name__ == "__main__":
    main()
