"""How long a decision about who has to go takes, and its longest step.

10,000 claims of 1,000 queues, all over their quotas; 1,000 pods wait

python -m bench.reclaim
"""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import quantiles

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Take
from scheduler_plugin.reclaiming.room import decide
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_world,
    an_allocated_claim,
    put,
)

QUEUES, CLAIMS, WAITING = 1_000, 10_000, 1_000


def a_busy_world() -> World:
    """Half of the queues use everything, below ten parents; the others wait for their quotas."""
    world = a_world(a_queue("root", onvif=(CLAIMS, CLAIMS)))
    for number in range(10):
        put(world, a_queue(f"team{number}", parent="root", onvif=(CLAIMS // 10, -1)))
    for number in range(QUEUES):
        quota = 1 if number % 2 else 2 * CLAIMS // QUEUES
        put(world, a_queue(f"q{number}", parent=f"team{number % 10}", onvif=(quota, -1)))
    for number in range(CLAIMS):
        queue = f"q{(number % (QUEUES // 2)) * 2 + 1}"
        put(world, an_allocated_claim(f"c{number}", f"p{number}", queue=queue))
        put(world, a_pod(f"p{number}", queue=queue, claims=[f"c{number}"], node="n"))
    return world


def those_who_wait(world: World) -> list[PodView]:
    pods = []
    for number in range(WAITING):
        pod = a_pod(f"w{number}", queue=f"q{number % (QUEUES // 2) * 2}", claims=[f"w{number}"])
        put(world, a_claim(f"w{number}"), pod)
        pods.append(pod)
    return pods


def main() -> None:
    """Decide about each once, with what was decided before held; print milliseconds."""
    world = a_busy_world()
    wholes, steps, taken = [], [], 0
    for pod in those_who_wait(world):
        began = last = time.perf_counter()
        decision = None
        for decision in decide(pod, world, NOW):  # noqa: B007  The last one counts.
            now = time.perf_counter()
            steps.append(1000 * (now - last))
            last = now
        wholes.append(1000 * (time.perf_counter() - began))
        if isinstance(decision, Take):
            taken += 1
            world.hold(decision.hold)
            put(world, *(replace(user, deleting=True) for user in decision.pods))
    for name, found in (("decision", wholes), ("step", steps)):
        cuts = quantiles(found, n=100)
        print(f"{name}: p50 {cuts[49]:.2f} ms, p99 {cuts[98]:.2f} ms, most {max(found):.2f} ms")
    print(f"{taken} of {len(wholes)} are served")


if __name__ == "__main__":
    main()
