"""A trial of any decisions shows what a world with these decisions would, and changes none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_plugin.accounting.assumed import AssumedClaim, AssumedPod
from scheduler_plugin.accounting.assumptions import Assumptions
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_views import Trial
from scheduler_plugin.judging.gangs import GangAdmitted, judge_waiting
from scheduler_plugin.objects.names import NO_QUEUE, QUOTA_GATE, QueueName
from scheduler_plugin.objects.pods import PodGroupView
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_world,
    amounts,
    an_allocated_claim,
    claim_uid,
    pod_uid,
)

QUEUES, PODS, CLAIMS = ("root", "a", "b"), ("p", "q", "r", "s"), ("free", "label", "mine", "used")
CACHES = {"_paths", "_guaranteed"}
"""What is remembered of a tree, and follows from it."""


def a_base() -> World:
    """Queues below one another; a free claim, one of a user's label, two that are charged."""
    return a_world(
        a_queue("root"),
        a_queue("a", parent="root", onvif=(2, 9)),
        a_queue("b", parent="root", onvif=(2, 9)),
        a_claim("free"),
        a_claim("label", queue="b"),
        an_allocated_claim("mine", "p", queue="a"),
        an_allocated_claim("used", "x", queue="b"),
        a_pod("x", queue="b", claims=["used"], node="node-a", non_preemptible=True),
        *(a_pod(name, queue="a", claims=[claim]) for name, claim in zip(PODS, CLAIMS, strict=True)),
    )


Step = Callable[[World | Trial], None]


@dataclass(frozen=True)
class Assume:
    """A pod is admitted."""

    pod: str
    claims: frozenset[str]
    queue: str
    non_preemptible: bool
    decided_by: str

    def __call__(self, world: World | Trial) -> None:
        decider = AssumedPod(pod_uid(self.decided_by), QueueName("b")) if self.decided_by else None
        label = {"label": QueueName("b")}
        claims = [
            AssumedClaim(claim_uid(c), label.get(c, NO_QUEUE), amounts(onvif=len(c)), decider)
            for c in sorted(self.claims)
        ]
        pod = AssumedPod(pod_uid(self.pod), QueueName(self.queue), self.non_preemptible)
        world.assumptions.assume(pod, claims, amounts(onvif=1), NOW)


@dataclass(frozen=True)
class Keep:
    """Something is held for a pod."""

    pod: str
    queue: str
    is_device: bool

    def __call__(self, world: World | Trial) -> None:
        held = (amounts(onvif=2), amounts(onvif=1))
        hold = Hold(pod_uid(self.pod), self.pod, QueueName(self.queue), *held, self.is_device)
        world.assumptions.hold(hold)


@dataclass(frozen=True)
class Forget:
    """A pod is bound, or is not after all."""

    pod: str
    for_good: bool

    def __call__(self, world: World | Trial) -> None:
        assumptions = world.assumptions
        (assumptions.forget_with_hold if self.for_good else assumptions.forget)(pod_uid(self.pod))


@dataclass(frozen=True)
class ForgetClaim:
    """A claim is deleted."""

    claim: str

    def __call__(self, world: World | Trial) -> None:
        world.assumptions.forget_claim(claim_uid(self.claim))


pods, queues = st.sampled_from(PODS), st.sampled_from(QUEUES)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        Assume,
        pods,
        st.frozensets(st.sampled_from(CLAIMS)),
        queues,
        st.booleans(),
        st.sampled_from(("", *PODS)),
    ),
    st.builds(Keep, pods, queues, st.booleans()),
    st.builds(Forget, pods, st.booleans()),
    st.builds(ForgetClaim, st.sampled_from(CLAIMS)),
)


def shown(assumptions: Assumptions) -> dict[str, object]:
    """All that anybody can ask the table."""
    claims = [claim_uid(name) for name in CLAIMS]
    everybody = [pod_uid(name) for name in PODS]
    places = [QueueName(name) for name in QUEUES]
    key = next(iter(amounts(onvif=1)))[0]
    return {
        "sums": [_of(t) for t in (assumptions.usage, assumptions.non_preemptible)],
        "amounts": [[assumptions.usage.amount(q, key) for q in places]],
        "own": [assumptions.usage.own(q, key) for q in places],
        "own of": dict(sorted(assumptions.usage.own_of(key).items())),
        "in": [q in assumptions.usage for q in places],
        "counted": [
            [_of(t) for t in assumptions.counted_for(p, claims, claims)] for p in everybody
        ],
        "assumed": [assumptions.is_assumed(p) for p in everybody],
        "admitted": assumptions.admitted(),
        "length": len(assumptions),
        "owners": [assumptions.owner(c) for c in claims],
        "pods": [assumptions.pods(c) for c in claims],
        "holds": list(assumptions.holds),
        "devices": assumptions.holds.of_devices(),
        "held": [assumptions.holds.counted_for(p) for p in everybody],
    }


def _of(totals: Any) -> dict[str, object]:
    return {str(queue): found for queue, found in totals.by_queue().items()}


def image(found: object, within: frozenset[int] = frozenset()) -> object:
    """All that an object is made of, in its order: two that are alike are so to the byte."""
    if found is None or isinstance(found, (str, int, float, bytes)) or id(found) in within:
        return str(found)
    within |= {id(found)}
    if isinstance(found, Mapping) and type(found) is dict:
        return [[image(key, within), image(value, within)] for key, value in found.items()]
    if isinstance(found, (list, tuple)):
        return [image(each, within) for each in found]
    if isinstance(found, (set, frozenset)):
        return sorted(str(image(each, within)) for each in found)
    if callable(found):
        return ""
    slots = getattr(type(found), "__slots__", ())
    fields = getattr(found, "__dict__", None) or {s: getattr(found, s) for s in slots}
    named = {name: value for name, value in fields.items() if name not in CACHES}
    return [type(found).__name__, image(named, within)] if named else repr(found)


class TrialHistories(RuleBasedStateMachine):
    """Decisions that count, and trials of others in between."""

    @initialize()
    def begin(self) -> None:
        self.world, self.done = a_base(), list[Step]()

    @rule(step=steps)
    def decide(self, step: Step) -> None:
        step(self.world)
        self.done.append(step)

    @rule(tried=st.lists(steps, max_size=6), again=st.lists(steps, max_size=2))
    def try_some(self, tried: list[Step], again: list[Step]) -> None:
        before = image(self.world)
        trial = self.world.trial()
        for step in tried:
            step(trial)
        within = trial.trial()
        for step in again:
            step(within)

        for found, made in ((trial, tried), (within, [*tried, *again])):
            rebuilt = a_base()
            for step in [*self.done, *made]:
                step(rebuilt)
            assert shown(found.assumptions) == shown(rebuilt.assumptions)
        assert image(self.world) == before

    @rule(tried=st.lists(steps, min_size=1, max_size=6), line=st.integers(1, 200))
    def meet_an_error(self, tried: list[Step], line: int) -> None:
        before = image(self.world)
        with suppress(AnError), an_error_at(line):
            trial = self.world.trial()
            for step in tried:
                step(trial)
        assert image(self.world) == before

    @invariant()
    def nothing_counts_twice(self) -> None:
        assert all(amount >= 0 for _, found in self.sums() for _, amount in found)

    def sums(self) -> Iterator[tuple[str, Any]]:
        world = getattr(self, "world", None)
        return iter(world.assumptions.usage.by_queue().items() if world is not None else ())


TestTrialHistories = TrialHistories.TestCase
TestTrialHistories.settings = settings(deadline=None, max_examples=100, stateful_step_count=12)


class AnError(Exception):
    """Whatever may go wrong in a line."""


@contextmanager
def an_error_at(line: int) -> Iterator[None]:
    """An exception before the line with this number of those of the product that are run."""
    left, before = line, sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if "/scheduler_plugin/" not in frame.f_code.co_filename.replace("/tests/", "\0"):
            return None
        if event == "line":
            left -= 1
            if not left:
                raise AnError
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def a_world_with_a_gang() -> World:
    gate = {"schedulingGates": [{"name": QUOTA_GATE}]}
    traits: dict[str, Any] = {"annotations": {"pod-group-name": "g"}, "queue": "a", "spec": gate}
    world = a_base()
    world.put_group(PodGroupView("default", "g", NO_QUEUE, 3))
    for number in range(3):
        requests = {"akri.sh/onvif": 1}
        claims = ["free", "mine"]
        world.put_pod(a_pod(f"g{number}", claims=claims, requests=requests, **traits))
    Assume("q", frozenset({"free", "label"}), "a", True, "r")(world)
    Keep("s", "b", False)(world)
    return world


@settings(deadline=None, max_examples=200)
@given(line=st.integers(1, 4000))
def test_an_error_anywhere_in_a_verdict_on_a_group_changes_nothing(line: int) -> None:
    world = a_world_with_a_gang()
    pod = world.facts.pod_named("default", "g0")
    assert pod is not None
    assert isinstance(judge_waiting(pod, world), GangAdmitted)
    before, heard = image(world), list[object]()
    world.assumptions.subscribe(heard.append)
    subscribed = image(world)

    with suppress(AnError), an_error_at(line):
        judge_waiting(pod, world)

    assert image(world) == subscribed
    assert before != []
    assert heard == []
