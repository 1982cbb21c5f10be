"""With constant demand evictions end, where queues say in devices or in memory what they have.

Each claim is a part of one size of a device: it counts as a device and as memory. Quotas are uneven
amounts, and a queue may list one resource, both or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import ResourceKey
from tests.scheduler_plugin.builders import a_claim, a_pod, put
from tests.scheduler_plugin.reclaiming.builders import a_used_pod
from tests.scheduler_plugin.reclaiming.measure_builders import (
    a_gpu_world,
    below,
    gpus,
    memory,
    part_of,
    used_part,
)
from tests.scheduler_plugin.reclaiming.test_cycles_end import (
    LEAVES,
    MOST_ROUNDS,
    PARENTS,
    Cluster,
)

PART = 7 * 2**30 + 1
"""The bytes of each claim."""

Listed = tuple[int | None, int | None]
"""A queue's quota of devices, and of memory in halves of a claim; None where it lists none."""


@dataclass
class MeasuredCluster(Cluster):
    """The same with claims for parts of a vendor's devices."""

    @classmethod
    def of(cls, listed: dict[str, Listed], pods: list[tuple[str, int]], room: int) -> Any:
        found = cls({}, {"parts": room}, {f"p{n}": (q, (), p) for n, (q, p) in enumerate(pods)})
        found.listed = listed
        return found

    def __post_init__(self) -> None:
        self.listed: dict[str, Listed] = {}

    def world(self) -> World:
        world = a_gpu_world(*(self._queue(name) for name in PARENTS))
        for name in sorted(self.pods):
            put(world, *self._objects(name))
        for holds in self.holds.values():
            for hold in holds:
                world.hold(hold)
        return world

    def _queue(self, name: str) -> Any:
        devices, halves = self.listed[name]
        room = str(self.room["parts"] * PART)
        if not PARENTS[name]:
            return below(name, memory(room, room), parent="")
        entries = [] if devices is None else [gpus(devices)]
        entries += [] if halves is None else [memory(str(halves * PART // 2))]
        return below(name, *entries, parent=PARENTS[name])

    def _objects(self, name: str) -> list[object]:
        queue, _, priority = self.pods[name]
        if name not in self.runs:
            claim = a_claim(name, requests=[part_of(str(PART))])
            return [claim, a_pod(name, queue=queue, claims=[name], spec={"priority": priority})]
        used = used_part(queue, name, str(PART))
        return [used, a_used_pod(name, queue, name, priority=priority)]


QUOTAS = st.tuples(st.one_of(st.none(), st.integers(0, 2)), st.one_of(st.none(), st.integers(0, 5)))


@example(
    listed={"root": (0, 0), "a": (1, None), "b": (None, 2), "a1": (1, None), "a2": (None, None)},
    room=1,
    pods=[("a1", 0), ("b", 0)],
)
@given(
    listed=st.fixed_dictionaries(dict.fromkeys(PARENTS, QUOTAS)),
    room=st.integers(1, 4),
    pods=st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(0, 1)), min_size=1, max_size=7),
)
@settings(max_examples=30, deadline=None)
def test_evictions_end(listed: dict[str, Listed], room: int, pods: list[tuple[str, int]]) -> None:
    cluster = MeasuredCluster.of(listed, pods, room)

    rounds = [cluster.step() for _ in range(MOST_ROUNDS)]

    assert not all(rounds[-5:]), cluster
    assert not is_over(cluster.world(), room)


def is_over(world: World, room: int) -> bool:
    """Whether more memory is in use than the limit of all."""
    used = dict(world.ledger.of(world.facts.tree.path(next(iter(world.facts.tree)).name)[-1]).usage)
    return any(amount > room * PART * 1000 for key, amount in used.items() if is_memory(key))


def is_memory(key: ResourceKey) -> bool:
    return str(key) == "gpu-memory"
