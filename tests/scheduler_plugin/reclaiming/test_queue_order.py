"""Whose turn it is: the queue farthest below its share, and in it priority, then age."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_plugin.accounting.world import World
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.placements import LimitsOnly
from scheduler_plugin.reclaiming.queue_order import QueueOrder
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from tests.scheduler_plugin.builders import NOW, a_queue, a_world
from tests.scheduler_plugin.reclaiming.builders import use, waiting


def order(world: World, *, serves: bool = False) -> list[str]:
    """The pods that wait, in their order; whether each is served before the next is asked for."""
    cycle = Cycle(world, NOW, NONE_EXCLUDED, LimitsOnly())
    found = []
    for pod in QueueOrder([p for p in world.facts.pods() if not p.is_bound], cycle.queue_shares):
        found.append(pod.name)
        if serves:
            cycle.serve(pod)
    return found


def below(*objects: Sequence[object], **quotas: int) -> World:
    queues = [a_queue("root", onvif=(9, 9))]
    queues += [a_queue(name, parent="root", onvif=(quota, 9)) for name, quota in quotas.items()]
    return a_world(*queues, *(each for found in objects for each in found))


def test_the_queue_farthest_below_its_share_goes_first() -> None:
    lines = [waiting(queue, f"{queue}{n}") for queue in ("a", "b") for n in range(3)]
    world = below(*lines, use("a", "u1"), use("robots", "u2"), a=3, b=3, robots=0)

    assert order(world)[0] == "b0"


def test_what_a_cycle_gives_to_a_queue_counts_for_who_comes_next() -> None:
    lines = [waiting(queue, f"{queue}{n}") for queue in ("a", "b") for n in range(3)]
    world = below(*lines, use("robots", "u"), a=3, b=3, robots=0)

    assert order(world, serves=True) == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_within_a_queue_priority_goes_first_and_then_age() -> None:
    pods = [
        waiting("a", "old", created="2026-11-21T10:00:00Z"),
        waiting("a", "young", created="2026-11-21T10:30:00Z"),
        waiting("a", "urgent", created="2026-11-21T11:00:00Z", priority=7),
    ]

    assert order(below(*pods, a=3)) == ["urgent", "old", "young"]


def test_whoever_is_within_no_share_comes_last_and_comes() -> None:
    world = below(waiting("a", "a1"), waiting("b", "b1"), use("a", "u"), a=1, b=1)

    assert order(world) == ["b1", "a1"]
