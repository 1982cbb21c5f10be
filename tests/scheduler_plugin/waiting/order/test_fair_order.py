"""A round finds the line that looking at all of them would find, whatever comes in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.shapes.quantities import PER_UNIT
from scheduler_plugin.accounting.charges.entries import PodEntry
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import Charges, ResourceKey, charges
from scheduler_plugin.objects.measures import Definition, Measure
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.waiting.classes.pod_classes import ClassKey, EquivalenceClass
from scheduler_plugin.waiting.order import fair_order
from scheduler_plugin.waiting.order.fair_order import FairOrder
from scheduler_plugin.waiting.order.queue_ranks import Rank, own_rank, rank
from tests.scheduler_plugin.builders import a_queue, a_world, amounts

PARENTS = {"left": "root", "right": "root", "leaf": "left", "twig": "left", "root": "", "lone": ""}
QUOTAS = {"root": 9, "left": 4, "right": 2, "leaf": 1, "twig": 2, "lone": 1}
PRIORITIES = {"twig": 200, "lone": 50}
MEMORY = Definition(name="memory", driver="gpu.example.com", measure=Measure(capacity="memory"))
GIB = PER_UNIT * 2**30
ASKED = (
    *(amounts(onvif=1), amounts(onvif=2), amounts(gpu=1), amounts(onvif=1, gpu=1), amounts()),
    charges({MEMORY.key: 40 * GIB + 1}),
    charges({MEMORY.key: 7 * GIB, ResourceKey("gpu"): 1}),
)

queues = st.sampled_from(sorted(PARENTS))
some_lines = st.lists(
    st.tuples(queues, st.integers(0, 9), st.sampled_from(ASKED)), min_size=1, max_size=12
)
use = st.tuples(queues, st.sampled_from(ASKED))


MEASURED = {"name": "memory", "driver": "gpu.example.com", "measure": {"capacity": "memory"}}


def new_world() -> World:
    world = a_world()
    for name, parent in PARENTS.items():
        above = {"parent": parent} if parent else {}
        quota = QUOTAS[name]
        traits = {"priority": PRIORITIES.get(name, 100), **above}
        resources = [
            {"deviceClass": "onvif", "quota": quota, "overQuotaWeight": 2},
            {"deviceClass": "gpu", "quota": quota // 2},
            {**MEASURED, "quota": f"{10 * quota}Gi"},
        ]
        world.put_queue(a_queue(name, **traits, resources=resources))
    return world


def a_line(number: int, queue: str, age: int, requests: Charges) -> EquivalenceClass:
    class_key = ClassKey(QueueName(queue), f"n{number}", False, (), ())
    name = f"p{number}"
    return EquivalenceClass(
        class_key, requests, sort_keys=[(0, f"{age}", "default", name, PodUid(name))]
    )


def plain_next(
    pod_classes: list[EquivalenceClass], world: World, level: int = 0
) -> EquivalenceClass:
    """Down from the root: the child that stands best; of equals, whose next turn is earlier."""
    children: dict[QueueName | None, list[EquivalenceClass]] = {}
    for pod_class in pod_classes:
        path = world.facts.tree.path(pod_class.class_key.queue)[::-1]
        children.setdefault(path[level] if level < len(path) else None, []).append(pod_class)
    ranked = []
    for child, below in children.items():
        first = plain_next(below, world, level + 1) if child else min(below, key=turn)
        own = own_rank(first.class_key.queue, first.requests, world)
        stands = rank(child, first.requests, world) if child else own
        ranked.append((stands, first.sort_keys[0], first))
    return min(ranked, key=lambda found: found[:2])[-1]


def turn(pod_class: EquivalenceClass) -> tuple[object, ...]:
    return pod_class.sort_keys[0]


@settings(max_examples=200, deadline=None)
@given(
    early=some_lines, late=some_lines, uses=st.lists(use, max_size=24), gaps=st.lists(st.booleans())
)
def test_the_first_is_found(
    early: list[tuple[str, int, Charges]],
    late: list[tuple[str, int, Charges]],
    uses: list[tuple[str, Charges]],
    gaps: list[bool],
) -> None:
    world = new_world()
    found = [a_line(number, *of) for number, of in enumerate([*early, *late])]
    pod_classes = {pod_class.class_key: pod_class for pod_class in found}
    taking_turns = FairOrder(pod_classes, world)
    waiting, coming = found[: len(early)], found[len(early) :]
    taking_turns.add([pod_class.class_key for pod_class in waiting])
    while waiting:
        first = taking_turns.next()
        assert first == plain_next(waiting, world)
        waiting.remove(first)
        if uses:
            queue, amount = uses.pop()
            entry = PodEntry(QueueName(queue), amount, non_preemptible=False, bound=True)
            world.ledger.post_pod(PodUid(f"user-{len(uses)}"), entry)
            taking_turns.charged([QueueName(queue)])
        if coming and not (gaps and gaps.pop()):
            waiting.append(coming.pop())
            taking_turns.add([waiting[-1].class_key])
    assert taking_turns.next() is None
    assert not list(taking_turns.remaining())


def test_a_line_that_comes_may_give_the_turn_to_another_line() -> None:
    """Its own queue stands worse with it, so that an earlier pod beside it is the next."""
    beside, nephew = a_line(0, "left", 1, ASKED[0]), a_line(1, "leaf", 4, ASKED[0])
    cousins = [a_line(2, "right", 2, ASKED[0]), a_line(3, "right", 3, ASKED[0])]
    comes = a_line(4, "leaf", 3, ASKED[2])
    found = [beside, nephew, *cousins, comes]
    taking_turns = FairOrder({pod_class.class_key: pod_class for pod_class in found}, new_world())
    taking_turns.add([pod_class.class_key for pod_class in found[:4]])
    assert taking_turns.next() == plain_next(found[:4], new_world()) == cousins[0]

    taking_turns.add([comes.class_key])

    left = [beside, nephew, cousins[1], comes]
    assert taking_turns.next() == plain_next(left, new_world()) == beside


def test_devices_and_bytes_are_compared_by_parts_of_the_largest_quota() -> None:
    """9 devices are the largest quota of onvif, and 90Gi that of memory."""
    world = new_world()
    entry = PodEntry(QueueName("twig"), amounts(onvif=5), non_preemptible=False, bound=True)
    world.ledger.post_pod(PodUid("user"), entry)
    less, more = charges({MEMORY.key: 21 * GIB}), charges({MEMORY.key: 50 * GIB})

    def goes_first(used: Charges) -> bool:
        entry = PodEntry(QueueName("right"), used, non_preemptible=False, bound=True)
        world.ledger.post_pod(PodUid("other"), entry)
        return (
            rank(QueueName("right"), used, world)[2] < rank(QueueName("twig"), ASKED[0], world)[2]
        )

    assert goes_first(less)
    assert not goes_first(more)


def test_a_line_that_is_gone_has_no_turn() -> None:
    gone, stays = a_line(0, "left", 0, ASKED[0]), a_line(1, "left", 1, ASKED[0])
    pod_classes = {pod_class.class_key: pod_class for pod_class in (gone, stays)}
    taking_turns = FairOrder(pod_classes, new_world())
    taking_turns.add([gone.class_key, stays.class_key, stays.class_key])
    del pod_classes[gone.class_key]

    assert taking_turns.next() == stays
    assert taking_turns.next() is None


def test_line_costs_the_same_however_many_of_its_queue_take_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lines that come in the wrong order, the latest turn first, leave nothing to go through."""
    world, looks = new_world(), []

    def counted(*arguments: Any) -> Rank:
        looks.append(arguments)
        return own_rank(*arguments)

    found = [a_line(n, "leaf", 999 - n, amounts(onvif=1)) for n in range(300)]
    taking_turns = FairOrder({pod_class.class_key: pod_class for pod_class in found}, world)
    taking_turns.add([pod_class.class_key for pod_class in found])
    monkeypatch.setattr(fair_order, "own_rank", counted)
    most = 0
    while taking_turns.next() is not None:
        most = max(most, len(looks))
        looks.clear()

    assert most < 30


def test_a_pod_that_goes_to_another_line_in_a_round_has_its_turn_there() -> None:
    all_lines = [a_line(number, "leaf", 5, amounts()) for number in range(3)]
    pod_classes = {pod_class.class_key: pod_class for pod_class in all_lines}
    first, second, third = all_lines
    turning = FairOrder(pod_classes, new_world())
    turning.add(pod_classes)

    second.sort_keys[:] = third.sort_keys[:] = first.sort_keys
    pod_classes.pop(first.class_key)
    for pod_class in (second, third):
        turning.head_changed(pod_class)
    pod_classes.pop(second.class_key)

    assert turning.next() is third
    assert turning.next() is None
