"""Pods without a gate that were refused: who is told to come again, and when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    GroupChanged,
    NamespaceChanged,
    OtherChanged,
    PodChanged,
    QueueChanged,
)
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.names import (
    ACCOUNTED_LABEL,
    POD_GROUP_ANNOTATION,
    QUOTA_GATE,
    QueueName,
    Reason,
)
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView
from scheduler_plugin.waiting.admissions import GateRemoval, Retry, WaitingPod
from scheduler_plugin.waiting.classes.refused_pods import MOST, RefusedPods
from scheduler_plugin.waiting.deferred.deferred_pods import TRIED_SECONDS
from scheduler_plugin.waiting.gates import GateKeeper
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_world,
    amounts,
    an_allocated_claim,
    moment,
    our_class,
    pod_uid,
    put,
    their_class,
)

TRIED = timedelta(seconds=TRIED_SECONDS)


def a_plain_pod(name: str, **overrides: Any) -> PodView:
    """A pod without a gate; it asks for one device unless it names claims."""
    wanted = {} if "claims" in overrides else {"requests": {"akri.sh/onvif": 1}}
    return a_pod(name, **{"queue": "a", **wanted, **overrides})


@dataclass
class Scene:
    """A queue `a` that is full, and what kube-scheduler asks."""

    world: World = field(default_factory=lambda: a_world(a_queue("a", onvif=(0, 0))))
    refusals: RefusedPods = field(default_factory=RefusedPods)
    now: datetime = NOW

    def __post_init__(self) -> None:
        self.keeper = GateKeeper(self.world, self.refusals)
        self.refusals.changed = lambda uid: self.keeper.tried(uid, moment(self.now))

    def arrives(self, *pods: PodView) -> None:
        for pod in pods:
            self.world.put_pod(pod)
            self.keeper.note(PodChanged(pod.uid))

    def tries(self, pod: PodView) -> bool:
        """What Filter does; whether the pod passed."""
        self.world.assumptions.forget(pod.uid)
        self.world.assumptions.expire(self.now)
        verdict = judge(pod, self.world.facts.claims_of(pod), self.world)
        if isinstance(verdict, Admitted):
            assume(pod, verdict, self.world, self.now)
        self.refusals.answered(pod.uid, refused=not isinstance(verdict, Admitted))
        return isinstance(verdict, Admitted)

    def refused(self, *pods: PodView) -> None:
        self.arrives(*pods)
        for pod in pods:
            assert not self.tries(pod)

    def limit(self, limit: int) -> None:
        self.world.put_queue(a_queue("a", onvif=(0, limit)))
        self.keeper.note(QueueChanged(QueueName("a")))

    def told(self) -> list[str]:
        """Who is told that he fits."""
        decisions = self.keeper.decide(self.now, moment(self.now))
        assert all(isinstance(decision, Retry) for decision in decisions)
        return [decision.name for decision in decisions]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_one_free_slot_wakes_one_of_a_thousand(scene: Scene) -> None:
    scene.refused(*(a_plain_pod(f"p{n:03}") for n in range(1000)))
    assert scene.told() == []

    scene.limit(1)

    assert scene.told() == ["p000"]
    assert scene.told() == []
    assert scene.world.assumptions.usage.of(QueueName("a")) == amounts(onvif=1)


def test_its_place_in_line_is_told_on_request(scene: Scene) -> None:
    scene.refused(a_plain_pod("first"), a_plain_pod("second"))
    scene.told()

    found = scene.keeper.waiting("default", "second")

    assert isinstance(found, WaitingPod)
    assert (str(found.place), found.reason) == (
        '2 of 2 pods that wait in queue "a"',
        Reason.OVER_LIMIT,
    )


def test_the_room_is_kept_for_who_was_told(scene: Scene) -> None:
    first, second = a_plain_pod("first"), a_plain_pod("second")
    scene.refused(first, second)
    scene.limit(1)
    assert scene.told() == ["first"]

    assert not scene.tries(second)
    assert scene.tries(first)
    assert scene.told() == []


def test_priority_goes_first_then_age(scene: Scene) -> None:
    old = a_plain_pod("old", created="2026-11-21T10:00:00Z")
    new = a_plain_pod("new", created="2026-11-21T11:00:00Z")
    urgent = a_plain_pod("urgent", created="2026-11-21T11:30:00Z", spec={"priority": 5})
    scene.refused(new, old, urgent)
    scene.limit(2)

    assert scene.told() == ["urgent", "old"]


def test_those_at_the_gate_stand_in_the_same_line(scene: Scene) -> None:
    gated = a_plain_pod(
        "gated",
        created="2026-11-21T10:00:00Z",
        spec={"schedulingGates": [{"name": QUOTA_GATE}]},
    )
    scene.arrives(gated)
    scene.refused(a_plain_pod("plain", created="2026-11-21T11:00:00Z"))
    scene.limit(2)

    decisions = scene.keeper.decide(NOW, 0.0)

    assert [(type(d), d.name) for d in decisions] == [(GateRemoval, "gated"), (Retry, "plain")]


def test_who_was_not_asked_about_yet_does_not_wait(scene: Scene) -> None:
    scene.arrives(a_plain_pod("new"))
    scene.limit(1)

    assert scene.told() == []
    assert len(scene.keeper) == 0


def test_a_refusal_that_comes_before_its_pod_is_known_is_kept(scene: Scene) -> None:
    pod = a_plain_pod("early")
    scene.refusals.answered(pod.uid, refused=True)
    scene.limit(1)
    assert scene.told() == []

    scene.arrives(pod)

    assert scene.told() == ["early"]


def test_a_pod_whose_cost_was_not_known_is_told_as_soon_as_it_is(scene: Scene) -> None:
    """Nothing that kube-scheduler watches changes when selectors are evaluated."""
    driver = "gpu.example.com"
    entry = {"name": "h200", "driver": driver, "selector": "device.driver == ''", "limit": 0}
    claim, pod = a_claim(requests=[a_request("gpu")]), a_plain_pod("p", claims=["cam"])
    put(scene.world, a_queue("a", resources=[entry]), their_class("gpu", "device.driver != ''"))
    spec = {"driver": driver, "pool": {"name": "n"}, "nodeName": "n", "devices": [{"name": "g"}]}
    scene.world.put_slice(slice_view({"metadata": {"name": "s"}, "spec": spec}))
    scene.world.put_claim(claim)
    scene.refused(pod)
    assert scene.told() == []

    for answer in (True, False):
        ((expressions, looks),) = scene.world.facts.open_looks.by_expressions().items()
        for uid in scene.world.put_selected(expressions, dict.fromkeys(looks, answer)):
            scene.keeper.note(ClaimChanged(uid))

    assert scene.told() == ["p"]
    assert scene.tries(pod)


def test_nobody_is_told_what_it_waits_for(scene: Scene) -> None:
    """kube-scheduler writes that itself."""
    scene.refused(a_plain_pod("a"))
    scene.told()

    assert scene.keeper.pending_conditions.take(10) == ()


def test_who_is_not_tried_lets_others_go_and_comes_seldom(scene: Scene) -> None:
    """No node has room for it: kube-scheduler asks nobody about it."""
    scene.refused(a_plain_pod("p0"), a_plain_pod("p1"))
    scene.limit(1)
    assert scene.told() == ["p0"]
    scene.now += TRIED
    assert scene.told() == ["p0"]
    scene.now += TRIED

    assert scene.told() == ["p1"]


def test_who_was_told_and_is_refused_again_and_again_comes_seldom(scene: Scene) -> None:
    """What kube-scheduler knows of it may be something else than what is known here."""
    pod = a_plain_pod("p0")
    scene.refused(pod)
    scene.limit(1)
    told = 0
    for _ in range(100):
        told += len(scene.told())
        scene.world.assumptions.forget(pod.uid)
        scene.refusals.answered(pod.uid, refused=True)
        scene.now += timedelta(seconds=0.1)

    assert told <= 5


def test_who_was_told_and_is_refused_stands_in_line_again(scene: Scene) -> None:
    pod = a_plain_pod("p")
    scene.refused(pod)
    scene.limit(1)
    assert scene.told() == ["p"]
    scene.limit(0)
    assert not scene.tries(pod)

    scene.limit(1)

    assert scene.told() == ["p"]


def test_who_is_gone_leaves_no_trace(scene: Scene) -> None:
    pod = a_plain_pod("p0")
    scene.refused(pod, a_plain_pod("p1"))
    scene.limit(1)
    assert scene.told() == ["p0"]

    scene.world.delete_pod(pod.uid)
    scene.keeper.note(PodChanged(pod.uid))

    assert scene.told() == ["p1"]


def test_a_freed_claim_wakes_whoever_may_have_it(scene: Scene) -> None:
    scene.world.put_queue(a_queue("b", onvif=(0, 5), claimSharing={"policy": "Deny"}))
    scene.world.put_queue(a_queue("a", onvif=(0, 5)))
    theirs = an_allocated_claim("cam", queue="b", pods=["other"])
    put(scene.world, a_plain_pod("other", queue="b", claims=["cam"], node="n"), theirs)
    scene.refused(a_plain_pod("mine", claims=["cam"]))
    assert scene.told() == []

    put(scene.world, a_claim("cam"))
    scene.keeper.note(ClaimChanged(theirs.uid))

    assert scene.told() == ["mine"]


def test_a_namespace_that_may_use_the_queue_wakes_its_pods(scene: Scene) -> None:
    selector = {"matchLabels": {"team": "a"}}
    scene.world.put_queue(a_queue("a", onvif=(0, 5), namespaceSelector=selector))
    scene.refused(a_plain_pod("p0"))
    assert scene.told() == []

    scene.world.put_namespace(NamespaceView("default", {"team": "a"}))
    scene.keeper.note(NamespaceChanged("default"))

    assert scene.told() == ["p0"]


def test_a_pod_group_that_gets_another_queue_wakes_its_pods(scene: Scene) -> None:
    scene.world.put_queue(a_queue("b", onvif=(0, 5)))
    scene.world.put_group(PodGroupView("default", "gang", QueueName("a")))
    scene.refused(a_plain_pod("p0", queue="", annotations={POD_GROUP_ANNOTATION: "gang"}))
    assert scene.told() == []

    scene.world.put_group(PodGroupView("default", "gang", QueueName("b")))
    scene.keeper.note(GroupChanged("default", "gang"))

    assert scene.told() == ["p0"]


def test_a_class_that_is_not_accounted_any_more_wakes_those_that_ask_for_it(scene: Scene) -> None:
    put(scene.world, a_claim("cam"))
    scene.refused(a_plain_pod("p0", claims=["cam"]))
    assert scene.told() == []

    scene.world.put_class(our_class(labels={ACCOUNTED_LABEL: "false"}))
    scene.keeper.note(OtherChanged())

    assert scene.told() == ["p0"]


def test_a_claim_of_an_attempt_that_failed_keeps_nobody(scene: Scene) -> None:
    covered = frozenset({"akri.sh/onvif"})
    pod = replace(a_plain_pod("p0"), extended_claim="gone", extended_resources=covered)
    scene.arrives(pod)
    assert not scene.tries(pod.without_extended_claim())
    scene.limit(1)

    assert scene.told() == ["p0"]


def test_a_decision_elsewhere_that_lapses_makes_room(scene: Scene) -> None:
    scene.limit(1)
    other = a_plain_pod("other")
    scene.arrives(other)
    assert scene.tries(other)
    scene.refused(a_plain_pod("p0"))
    assert scene.told() == []
    scene.now += ASSUMED_TTL

    assert scene.told() == ["p0"]


def test_the_next_term_knows_who_was_refused(scene: Scene) -> None:
    scene.refused(a_plain_pod("p0"))
    scene.keeper = GateKeeper(scene.world, scene.refusals)
    scene.limit(1)

    assert scene.told() == ["p0"]


def test_of_too_many_those_that_were_refused_the_longest_ago_are_left_alone() -> None:
    refusals = RefusedPods()
    left: list[str] = []
    refusals.changed = left.append
    for number in range(MOST + 1):
        refusals.answered(pod_uid(f"p{number}"), refused=True)

    assert len(refusals) == MOST
    assert pod_uid("p0") not in refusals
    assert left[-1] == pod_uid("p0")
