"""With constant demand evictions end, whatever pods need: of one class, of another, or of both.

Everybody who is evicted comes back and waits. The world is made anew in each round, from who runs
and who has something held for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.placements import LimitsOnly
from scheduler_plugin.reclaiming.targets import Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    our_class,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.builders import a_used_pod

KEYS = ("onvif", "arms")
PARENTS = {"root": "", "a": "root", "b": "root", "a1": "a", "a2": "a"}
LEAVES = ("a1", "a2", "b")
MOST_ROUNDS = 40

Wants = tuple[str, tuple[str, ...], int]
"""A queue, the classes, and the priority."""


@dataclass
class Cluster:
    """Pods by name, with who runs and what is held."""

    quotas: dict[str, dict[str, int]]
    room: dict[str, int]
    pods: dict[str, Wants]
    runs: set[str] = field(default_factory=set)
    holds: dict[str, tuple[Hold, ...]] = field(default_factory=dict)

    def world(self) -> World:
        world = a_world(our_class("arms"))
        for name, parent in PARENTS.items():
            shares = {key: (self.quotas[key][name], -1) for key in KEYS}
            if not parent:
                shares = {key: (self.room[key], self.room[key]) for key in KEYS}
            put(world, a_queue(name, parent=parent, **shares))
        for name in sorted(self.pods):
            put(world, *self._objects(name))
        for holds in self.holds.values():
            for hold in holds:
                world.hold(hold)
        return world

    def _objects(self, name: str) -> list[object]:
        queue, keys, priority = self.pods[name]
        claims = [f"{name}-{key}" for key in keys]
        if name not in self.runs:
            waits = [a_claim(f"{name}-{key}", requests=[a_request(key)]) for key in keys]
            return [*waits, a_pod(name, queue=queue, claims=claims, spec={"priority": priority})]
        used = [
            an_allocated_claim(
                f"{name}-{key}",
                name,
                queue=queue,
                requests=[a_request(key)],
                results=[a_result(pool=key, device=f"{key}-aaaaaa")],
            )
            for key in keys
        ]
        return [*used, a_used_pod(name, queue, *claims, priority=priority)]

    def waiting(self, world: World) -> list[PodView]:
        """The most urgent first."""
        waits = sorted(self.pods.keys() - self.runs, key=lambda name: (-self.pods[name][2], name))
        return [pod for name in waits if (pod := world.facts.pod(pod_uid(name))) is not None]

    def step(self) -> bool:
        """Whoever fits is bound, then a cycle; whether anything was different after it."""
        before = set(self.runs)
        world = self.world()
        for pod in self.waiting(world):
            verdict = judge(pod, world.facts.claims_of(pod), world)
            if isinstance(verdict, Admitted):
                assume(pod, verdict, world, NOW)
                self.runs.add(pod.name)
                self.holds.pop(pod.name, None)
        world = self.world()
        cycle, has_taken = Cycle(world, NOW, NONE_EXCLUDED, LimitsOnly()), False
        for pod in self.waiting(world):
            found = cycle.serve(pod)
            if isinstance(found, Targets):
                self.runs -= {victim.name for victim in found.pods}
                self.holds[pod.name] = found.holds
                has_taken = True
        return has_taken or before != self.runs


QUOTAS = st.fixed_dictionaries({name: st.integers(0, 2) for name in PARENTS})
PODS = st.tuples(
    st.sampled_from(LEAVES),
    st.sampled_from([("onvif",), ("arms",), ("onvif", "arms")]),
    st.integers(0, 1),
)


BOTH = ("onvif", "arms")
NONE = dict.fromkeys(PARENTS, 0)


@example(
    quotas={"onvif": {**NONE, "a": 1, "a1": 1}, "arms": {**NONE, "b": 1}},
    room={"onvif": 1, "arms": 1},
    pods=[("a1", BOTH, 0), ("b", BOTH, 0)],
)
@given(
    quotas=st.fixed_dictionaries(dict.fromkeys(KEYS, QUOTAS)),
    room=st.fixed_dictionaries({key: st.integers(1, 3) for key in KEYS}),
    pods=st.lists(PODS, min_size=1, max_size=7),
)
@settings(max_examples=60, deadline=None)
def test_evictions_end(
    quotas: dict[str, dict[str, int]], room: dict[str, int], pods: list[Wants]
) -> None:
    cluster = Cluster(quotas, room, {f"p{number}": wants for number, wants in enumerate(pods)})

    rounds = [cluster.step() for _ in range(MOST_ROUNDS)]

    assert not all(rounds[-5:]), cluster
