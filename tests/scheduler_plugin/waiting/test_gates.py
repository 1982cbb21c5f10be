"""The gate keeper: who goes, in which order, what it costs, and what the others are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from kube.shapes.reading import UnreadableError
from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    OtherChanged,
    PodChanged,
    QueueChanged,
)
from scheduler_plugin.judging import verdicts as verdicts_module
from scheduler_plugin.judging.equivalence_classes import equivalence_class
from scheduler_plugin.judging.verdicts import Verdict
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.names import NO_QUEUE, QUOTA_GATE, QueueName, Reason
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodGroupView, PodView
from scheduler_plugin.objects.projections import project_pod
from scheduler_plugin.waiting import class_verdicts
from scheduler_plugin.waiting.admissions import Admission, GateCondition, GateRemoval, WaitReason
from scheduler_plugin.waiting.deferred.deferred_pods import TRIED_SECONDS
from scheduler_plugin.waiting.gates import RECHECK_SECONDS, GateKeeper
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim,
    a_pod,
    a_pod_object,
    a_queue,
    a_world,
    amounts,
    an_allocated_claim,
    claim_uid,
    moment,
    our_class,
    pod_uid,
    put,
)

GATES = [{"name": QUOTA_GATE}]


def a_gated_pod(name: str = "a", **overrides: Any) -> PodView:
    """A pod that waits at the gate; it asks for one device unless it names claims."""
    spec = {"schedulingGates": GATES, **overrides.pop("spec", {})}
    wanted = {} if "claims" in overrides else {"requests": {"akri.sh/onvif": 1}}
    return a_pod(name, **{"queue": "a", "spec": spec, **wanted, **overrides})


def decide(keeper: GateKeeper, now: datetime, most: int | None = None) -> tuple[Admission, ...]:
    return keeper.decide(now, moment(now), most)


def names(decisions: tuple[Admission, ...]) -> list[str]:
    return [decision.name for decision in decisions]


def told(world: World, keeper: GateKeeper, pod: PodView) -> None:
    world.put_pod(pod)
    keeper.note(PodChanged(pod.uid))


def fill(world: World, name: str, queue: str, count: int) -> PodView:
    """A pod that runs and uses some devices."""
    pod = a_pod(name, queue=queue, requests={"akri.sh/onvif": count}, node="node-a")
    put(world, pod)
    return pod


def end(world: World, keeper: GateKeeper, pod: PodView) -> None:
    told(world, keeper, replace(pod, ended=True))


# Who goes.


def test_a_pod_that_fits_goes_and_is_assumed_to_be_bound() -> None:
    world = a_world(a_queue("a", onvif=(0, 2)), a_gated_pod("a"))
    keeper = GateKeeper(world)

    assert decide(keeper, NOW) == (
        GateRemoval(
            namespace="default",
            name="a",
            uid=pod_uid("a"),
            queue=QueueName("a"),
        ),
    )
    assert world.assumptions.usage.of(QueueName("a")) == amounts(onvif=1)
    assert decide(keeper, NOW) == ()


def test_no_more_pods_go_than_fit() -> None:
    pods = [a_gated_pod(f"p{n}") for n in range(5)]
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 2)), *pods))

    assert names(decide(keeper, NOW)) == ["p0", "p1"]


def test_a_pod_that_asks_for_nothing_accounted_goes_at_once() -> None:
    pod = a_gated_pod("a", requests={"example.com/gpu": 1}, queue="")
    world = a_world(pod)

    assert names(decide(GateKeeper(world), NOW)) == ["a"]
    assert len(world.assumptions) == 0


def test_pods_that_share_a_claim_go_together() -> None:
    pods = [a_gated_pod(f"p{n}", claims=["cam"]) for n in range(3)]
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 1)), a_claim("cam"), *pods))

    assert names(decide(keeper, NOW)) == ["p0", "p1", "p2"]


def test_a_pod_without_the_gate_is_not_kept() -> None:
    pod = a_pod("a", queue="a", requests={"akri.sh/onvif": 1})
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 2)), pod))

    assert len(keeper) == 0
    assert decide(keeper, NOW) == ()


@pytest.mark.parametrize("change", [{"deleting": True}, {"gates": ()}, {"ended": True}])
def test_a_pod_that_changes_its_mind_leaves_no_trace(change: dict[str, Any]) -> None:
    pod = a_gated_pod("a")
    world = a_world(a_queue("a", onvif=(0, 0)), pod)
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()

    told(world, keeper, replace(pod, **change))
    put(world, a_queue("a", onvif=(0, 5)))
    keeper.note(QueueChanged(QueueName("a")))

    assert len(keeper) == 0
    assert decide(keeper, NOW) == ()


def test_a_deleted_pod_makes_room_for_the_next() -> None:
    world = a_world(a_queue("a", onvif=(0, 1)), a_gated_pod("p0"), a_gated_pod("p1"))
    keeper = GateKeeper(world)
    assert names(decide(keeper, NOW)) == ["p0"]

    world.delete_pod(pod_uid("p0"))
    keeper.note(PodChanged(pod_uid("p0")))

    assert names(decide(keeper, NOW)) == ["p1"]


def test_without_a_weight_the_gate_lets_go_as_many_as_the_quota() -> None:
    world = a_world(a_queue("a", onvif=(1, 9, 0)), a_gated_pod("p0"), a_gated_pod("p1"))
    keeper = GateKeeper(world)
    assert names(decide(keeper, NOW)) == ["p0"]
    assert names(decide(keeper, NOW)) == []

    world.delete_pod(pod_uid("p0"))
    keeper.note(PodChanged(pod_uid("p0")))

    assert names(decide(keeper, NOW)) == ["p1"]


def test_a_pod_with_another_gate_holds_no_room() -> None:
    held = a_gated_pod("p0", spec={"schedulingGates": [{"name": "example.com/hold"}, *GATES]})
    world = a_world(a_queue("a", onvif=(0, 1)), held, a_gated_pod("p1"))

    assert names(decide(GateKeeper(world), NOW)) == ["p1"]


def test_a_pod_goes_once_its_claim_is_made() -> None:
    entry = {"name": "cam", "resourceClaimTemplateName": "cams"}
    pod = a_gated_pod("a", claims=[], resource_claims=[entry])
    world = a_world(a_queue("a", onvif=(0, 1)), pod)
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()

    made = [{"name": "cam", "resourceClaimName": "a-cam-x"}]
    status = {"resourceClaimStatuses": made}
    told(world, keeper, a_gated_pod("a", claims=[], resource_claims=[entry], status=status))
    assert decide(keeper, NOW) == ()
    put(world, a_claim("a-cam-x"))
    keeper.note(ClaimChanged(claim_uid("a-cam-x")))

    assert names(decide(keeper, NOW)) == ["a"]


# The order.


def test_priority_goes_first_then_age() -> None:
    world = a_world(
        a_queue("a", onvif=(0, 9)),
        a_gated_pod("young", created="2026-11-21T11:00:02Z"),
        a_gated_pod("old", created="2026-11-21T11:00:01Z"),
        a_gated_pod("urgent", created="2026-11-21T11:00:03Z", spec={"priority": 7}),
    )

    assert names(decide(GateKeeper(world), NOW)) == ["urgent", "old", "young"]


def test_the_queue_that_is_furthest_under_its_quota_goes_first() -> None:
    world = a_world(
        a_queue("root", onvif=(8, 8)),
        a_queue("a", parent="root", onvif=(4, 8)),
        a_queue("b", parent="root", onvif=(2, 8)),
        *(a_gated_pod(f"a{n}", created="2026-11-21T10:00:00Z") for n in range(8)),
        *(a_gated_pod(f"b{n}", queue="b") for n in range(8)),
    )
    fill(world, "runs", "a", 1)

    # a: 1/4, 2/4, 3/4, 4/4; b: 0/2, 1/2, 2/2; then whoever is less over its quota.
    expected = ["b0", "a0", "a1", "b1", "a2", "a3", "b2"]
    assert names(decide(GateKeeper(world), NOW)) == expected


def test_siblings_are_compared_at_each_level_of_the_tree() -> None:
    """The subtree that is further under its quota goes first, however full the queue in it is."""
    world = a_world(
        a_queue("root", onvif=(5, 5)),
        a_queue("left", parent="root", onvif=(8, 9)),
        a_queue("a", parent="left", onvif=(1, 9)),
        a_queue("b", parent="root", onvif=(2, 9)),
        *(a_gated_pod(f"a{n}") for n in range(3)),
        *(a_gated_pod(f"b{n}", queue="b") for n in range(3)),
    )
    fill(world, "runs", "a", 2)
    fill(world, "other", "b", 1)

    assert names(decide(GateKeeper(world), NOW)) == ["a0", "a1"]


def test_beyond_quotas_the_larger_priority_goes_first_and_then_weights_count() -> None:
    world = a_world(
        a_queue("root", onvif=(0, 9)),
        a_queue("a", parent="root", onvif=(1, -1, 1)),
        a_queue("b", parent="root", onvif=(1, -1, 3)),
        a_queue("c", parent="root", onvif=(0, 2), priority=200),
        *(a_gated_pod(f"{queue}{n}", queue=queue) for n in range(9) for queue in "abc"),
    )

    went = names(decide(GateKeeper(world), NOW))

    assert [name[0] for name in went] == ["a", "b", "c", "c", "b", "a", "b", "b", "b"]


def test_a_queue_that_moved_stands_with_its_new_siblings_from_the_next_turn_on() -> None:
    """In the middle of a round: what else changes is taken in a quarter of a second later."""
    parents = [a_queue(f"p{n}", onvif=(0, 9), priority=n) for n in (1, 2, 3, 4)]
    places = {"first": "p4", "moves": "p3", "stays": "p2"}
    queues = [a_queue(name, parent=place, onvif=(0, 9)) for name, place in places.items()]
    pods = [a_gated_pod(f"{name}-{n}", queue=name) for name in places for n in range(2)]
    world = a_world(*parents, *queues, *pods)
    keeper = GateKeeper(world)
    gone: list[str] = []
    while not gone:
        gone += names(decide(keeper, NOW, most=1))

    put(world, a_queue("moves", parent="p1", onvif=(0, 9)))
    keeper.note(QueueChanged(QueueName("moves")))
    while keeper.has_more:
        gone += names(decide(keeper, NOW, most=1))

    assert gone == ["first-0", "first-1", "stays-0", "stays-1", "moves-0", "moves-1"]


def test_a_quota_counts_though_the_queue_above_does_not_list_the_class() -> None:
    world = a_world(
        a_queue("root", onvif=(0, 2)),
        a_queue("above", parent="root"),
        a_queue("a", parent="above", onvif=(1, -1)),
        a_queue("b", parent="root", onvif=(0, -1)),
        *(a_gated_pod(f"b{n}", queue="b", created="2026-11-21T10:00:00Z") for n in range(2)),
        *(a_gated_pod(f"a{n}") for n in range(2)),
    )

    assert names(decide(GateKeeper(world), NOW)) == ["a0", "b0"]


def test_siblings_that_stand_equally_take_turns_by_age() -> None:
    """A single device goes round, whatever the queues are called."""
    queues = [a_queue(name, parent="root", onvif=(0, -1)) for name in "abc"]
    pods = [
        a_gated_pod(f"{queue}{n}", queue=queue, created=f"2026-11-21T11:00:{n}{offset}Z")
        for n in range(3)
        for offset, queue in enumerate("cab")
    ]
    world = a_world(a_queue("root", onvif=(0, 1)), *queues, *pods)
    keeper, went = GateKeeper(world), []
    while gone := names(decide(keeper, NOW)):
        went += gone
        world.delete_pod(pod_uid(gone[0]))
        keeper.note(PodChanged(pod_uid(gone[0])))

    assert went == ["c0", "a0", "b0", "c1", "a1", "b1", "c2", "a2", "b2"]


def test_an_unlimited_quota_does_not_starve_a_sibling() -> None:
    world = a_world(
        a_queue("root", onvif=(4, 4)),
        a_queue("a", parent="root", onvif=(-1, -1)),
        a_queue("b", parent="root", onvif=(4, -1)),
        *(a_gated_pod(f"a{n}", created="2026-11-21T10:00:00Z") for n in range(4)),
        *(a_gated_pod(f"b{n}", queue="b") for n in range(4)),
    )

    assert names(decide(GateKeeper(world), NOW)) == ["a0", "b0", "a1", "b1"]


def test_a_pod_that_does_not_fit_lets_those_pass_that_do() -> None:
    world = a_world(
        a_queue("a", onvif=(0, 2)),
        a_gated_pod("large", requests={"akri.sh/onvif": 3}, spec={"priority": 5}),
        a_gated_pod("small"),
    )

    assert names(decide(GateKeeper(world), NOW)) == ["small"]


def test_a_places_number_counts_those_of_the_same_queue() -> None:
    world = a_world(
        a_queue("a", onvif=(0, 0)),
        a_queue("b", onvif=(0, 0)),
        a_gated_pod("p1", created="2026-11-21T11:00:01Z"),
        a_gated_pod("p2", created="2026-11-21T11:00:02Z", non_preemptible=True),
        a_gated_pod("p3", created="2026-11-21T11:00:03Z"),
        a_gated_pod("other", queue="b", created="2026-11-21T10:00:00Z"),
    )
    keeper = GateKeeper(world)
    decide(keeper, NOW)

    assert str(keeper.place(pod_uid("p3"))) == '3 of 3 pods that wait in queue "a"'
    assert str(keeper.place(pod_uid("p2"))) == '2 of 3 pods that wait in queue "a"'
    assert keeper.place(pod_uid("unknown")) is None


# When it decides anew.


def test_usage_that_falls_lets_the_next_pod_go() -> None:
    world = a_world(a_queue("a", onvif=(0, 2)), a_gated_pod("p0"), a_gated_pod("p1"))
    running = fill(world, "runs", "a", 2)
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()

    end(world, keeper, running)

    assert names(decide(keeper, NOW)) == ["p0", "p1"]


def test_a_limit_that_is_raised_by_100_lets_100_pods_go() -> None:
    pods = [a_gated_pod(f"p{n:04}") for n in range(300)]
    world = a_world(a_queue("a", onvif=(0, 0)), *pods)
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()

    put(world, a_queue("a", onvif=(0, 100)))
    keeper.note(QueueChanged(QueueName("a")))

    assert names(decide(keeper, NOW)) == [f"p{n:04}" for n in range(100)]


def test_a_claim_that_becomes_charged_lets_its_other_pods_join() -> None:
    pod = a_gated_pod("b", claims=["cam"])
    world = a_world(a_queue("a", onvif=(0, 0)), pod, a_claim("cam"))
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()

    put(world, an_allocated_claim("cam", "x", queue="a"), a_pod("x", queue="a", claims=["cam"]))
    keeper.note(ClaimChanged(claim_uid("cam")))
    assert decide(keeper, NOW) == (), "nobody was asked about the limit for it yet"
    put(world, a_pod("x", queue="a", claims=["cam"], node="node-a"))
    keeper.note(PodChanged(pod_uid("x")))

    assert names(decide(keeper, NOW)) == ["b"]


def test_a_claim_that_others_name_too_is_not_taken_for_one_of_many() -> None:
    """Its other pod may pay for it; a third one stays at its gate all the time."""
    held = {"schedulingGates": [{"name": "example.com/hold"}, *GATES]}
    world = a_world(
        a_queue("a", onvif=(0, 0)),
        *(a_claim(name) for name in ("cam", "own")),
        a_gated_pod("first", claims=["own"], created="2026-11-21T10:00:00Z"),
        a_gated_pod("joins", claims=["cam"]),
    )
    keeper = GateKeeper(world)
    told(world, keeper, a_gated_pod("held", claims=["cam"], spec=held))
    told(world, keeper, a_gated_pod("urgent", claims=["cam"], spec={"priority": 1}))
    assert decide(keeper, NOW) == ()

    put(world, a_queue("a", onvif=(0, 1)))
    keeper.note(QueueChanged(QueueName("a")))

    assert names(decide(keeper, NOW)) == ["urgent", "joins"]


def test_a_sharer_that_ends_makes_room_for_the_next() -> None:
    few = our_class(annotations={"moorage.dev/max-pods-per-claim": "1"})
    running = a_pod("runs", queue="a", claims=["cam"], node="node-a")
    cam = an_allocated_claim("cam", "runs", queue="a")
    world = a_world(few, a_queue("a"), running, cam, a_gated_pod("next", claims=["cam"]))
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()

    end(world, keeper, running)

    assert names(decide(keeper, NOW)) == ["next"]


def test_a_class_that_is_no_longer_accounted_lets_pods_go() -> None:
    world = a_world(a_queue("a", onvif=(0, 0)), a_gated_pod("a"))
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()

    world.delete_class(ClassName("onvif"))
    put(world, a_queue("a"))
    keeper.note(OtherChanged())

    assert names(decide(keeper, NOW)) == ["a"]


def test_what_no_change_tells_is_found_within_a_minute() -> None:
    world = a_world(a_gated_pod("a"))
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()
    put(world, a_queue("a", onvif=(0, 1)))
    assert decide(keeper, NOW) == ()

    assert keeper.next_look() == RECHECK_SECONDS
    assert names(decide(keeper, NOW + timedelta(seconds=RECHECK_SECONDS))) == ["a"]


def test_after_its_lapse_a_pod_without_a_gate_is_not_decided_about_again() -> None:
    pod = a_gated_pod("p0")
    world = a_world(a_queue("a", onvif=(0, 1)), pod, a_gated_pod("p1"))
    keeper = GateKeeper(world)
    assert names(decide(keeper, NOW)) == ["p0"]
    told(world, keeper, replace(pod, gates=()))

    assert decide(keeper, NOW + ASSUMED_TTL - timedelta(seconds=1)) == ()
    assert names(decide(keeper, NOW + ASSUMED_TTL)) == ["p1"]


def test_a_pod_whose_gate_is_still_there_after_the_lapse_waits_again() -> None:
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 1)), a_gated_pod("a")))
    decide(keeper, NOW)

    assert keeper.next_look() == ASSUMED_TTL.total_seconds()
    assert names(decide(keeper, NOW + ASSUMED_TTL)) == ["a"]


def test_a_gate_that_cannot_be_removed_starves_nobody() -> None:
    world = a_world(a_queue("a", onvif=(0, 1)), a_gated_pod("p0"), a_gated_pod("p1"))
    keeper = GateKeeper(world)
    assert names(decide(keeper, NOW)) == ["p0"]
    keeper.failed(pod_uid("p0"), moment(NOW))
    assert names(decide(keeper, NOW)) == ["p0"]
    keeper.failed(pod_uid("p0"), moment(NOW))

    assert names(decide(keeper, NOW)) == ["p1"]


def test_what_a_pod_leaves_that_nobody_asks_about_is_for_others_at_once() -> None:
    """Not only for those that share its claim: here they need more than there is."""
    tried = a_pod("a", queue="a", claims=["shared"])
    large = a_gated_pod("large", claims=["shared"], requests={"akri.sh/onvif": 5})
    other = a_gated_pod("other")
    world = a_world(a_queue("a", onvif=(0, 1)), a_claim("shared"), tried, large, other)
    keeper = GateKeeper(world, {tried.uid})
    assert names(decide(keeper, NOW)) == ["a"]

    assert names(decide(keeper, NOW + timedelta(seconds=TRIED_SECONDS))) == ["a"]
    assert names(decide(keeper, NOW + timedelta(seconds=2 * TRIED_SECONDS))) == ["other"]


def test_decisions_stop_where_others_have_their_turn_and_go_on_there() -> None:
    pods = [a_gated_pod(f"p{n}") for n in range(4)]
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 9)), *pods))
    gone = []
    while keeper.has_more:
        found = names(decide(keeper, NOW, most=1))
        assert len(found) <= 1
        gone += found

    assert gone == ["p0", "p1", "p2", "p3"]


# What it costs.


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pods that the keeper judges."""
    judged: list[str] = []
    judge: Callable[..., Verdict] = verdicts_module.judge

    def counted(pod: PodView, *rest: Any) -> Verdict:
        judged.append(pod.name)
        return judge(pod, *rest)

    monkeypatch.setattr(class_verdicts, "judge", counted)
    return judged


def test_of_pods_that_are_alike_one_is_judged(verdicts: list[str]) -> None:
    claims = [a_claim(f"c{n}") for n in range(500)]
    pods = [a_gated_pod(f"p{n}", claims=[f"c{n}"]) for n in range(500)]
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 0)), *claims, *pods))

    assert decide(keeper, NOW) == ()
    assert verdicts == ["p0"]


def test_a_change_elsewhere_judges_nobody(verdicts: list[str]) -> None:
    world = a_world(a_queue("a", onvif=(0, 0)), a_queue("b", onvif=(0, 9)))
    running = fill(world, "runs", "b", 2)
    put(world, *(a_gated_pod(f"p{n}") for n in range(50)))
    keeper = GateKeeper(world)
    decide(keeper, NOW)
    verdicts.clear()

    end(world, keeper, running)
    told(world, keeper, a_gated_pod("another"))
    decide(keeper, NOW)

    assert verdicts == []


def test_a_pod_that_starts_costs_one_verdict_and_one_for_whom_it_keeps_waiting(
    verdicts: list[str],
) -> None:
    world = a_world(a_queue("a", onvif=(0, 1)), *(a_gated_pod(f"p{n}") for n in range(50)))
    running = fill(world, "runs", "a", 1)
    keeper = GateKeeper(world)
    decide(keeper, NOW)
    verdicts.clear()

    end(world, keeper, running)
    decide(keeper, NOW)

    assert verdicts == ["p0", "p1"]


# What people are told.


def test_a_waiting_pod_is_told_why_it_waits() -> None:
    pod = a_gated_pod("a")
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 0)), pod))
    decide(keeper, NOW)

    assert keeper.pending_conditions.take(10) == (
        GateCondition(
            namespace="default",
            name="a",
            uid=pod_uid("a"),
            since="2026-11-21T11:00:00Z",
            reason=Reason.OVER_LIMIT,
            message='Pod default/a does not fit: queue "a" uses 0 onvif, 1 more would pass its'
            " limit of 0.",
        ),
    )
    assert keeper.pending_conditions.take(10) == ()


def test_a_pod_that_goes_at_once_is_told_nothing() -> None:
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 1)), a_gated_pod("a")))
    decide(keeper, NOW)

    assert keeper.pending_conditions.take(10) == ()


def test_a_pod_that_was_told_before_a_restart_is_not_told_again() -> None:
    pod = replace(a_gated_pod("a"), admission=Reason.OVER_LIMIT)
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 0)), pod))
    decide(keeper, NOW)

    assert keeper.pending_conditions.take(10) == ()


def test_numbers_that_change_are_no_news_and_another_reason_is() -> None:
    pod = a_gated_pod("a", requests={"akri.sh/onvif": 3})
    world = a_world(a_queue("a", onvif=(0, 1)), pod)
    keeper = GateKeeper(world)
    decide(keeper, NOW)
    told(world, keeper, replace(pod, admission=keeper.pending_conditions.take(1)[0].reason))

    put(world, a_queue("a", onvif=(0, 2)))
    keeper.note(QueueChanged(QueueName("a")))
    decide(keeper, NOW)
    assert keeper.pending_conditions.take(10) == ()

    world.delete_queue(QueueName("a"))
    keeper.note(QueueChanged(QueueName("a")))
    decide(keeper, NOW)
    assert [c.reason for c in keeper.pending_conditions.take(10)] == [Reason.QUEUE_NOT_FOUND]


def test_conditions_are_taken_in_portions_and_told_again_where_they_failed() -> None:
    pods = [a_gated_pod(f"p{n}") for n in range(5)]
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 0)), *pods))
    decide(keeper, NOW)

    assert [c.name for c in keeper.pending_conditions.take(3)] == ["p0", "p1", "p2"]
    keeper.pending_conditions.failed(pod_uid("p1"))
    assert [c.name for c in keeper.pending_conditions.take(9)] == ["p3", "p4", "p1"]


def test_who_would_have_fitted_before_others_got_the_room_is_told() -> None:
    keeper = GateKeeper(world := a_world(a_queue("a"), *(a_gated_pod(f"p{n}") for n in range(3))))
    put(world, a_queue("a", onvif=(0, 1)))
    keeper.note(QueueChanged(QueueName("a")))
    assert decide(keeper, NOW, most=3) == ()
    assert keeper.pending_conditions.take(9) == ()
    assert keeper.pending_conditions

    assert names(decide(keeper, NOW)) == ["p0"]

    assert [c.name for c in keeper.pending_conditions.take(9)] == ["p1", "p2"]
    assert not keeper.pending_conditions


def test_other_gates_and_missing_claims_are_told() -> None:
    held = a_gated_pod("p0", spec={"schedulingGates": [{"name": "example.com/hold"}, *GATES]})
    entry = {"name": "cam", "resourceClaimTemplateName": "cams"}
    lacking = a_gated_pod("p1", claims=[], resource_claims=[entry])
    keeper = GateKeeper(a_world(a_queue("a", onvif=(0, 1)), held, lacking))
    decide(keeper, NOW)

    found = {c.name: (c.reason, c.message) for c in keeper.pending_conditions.take(9)}
    assert found["p0"][0] == WaitReason.OTHER_GATES
    assert '"example.com/hold"' in found["p0"][1]
    assert found["p1"][0] == WaitReason.CLAIM_NOT_FOUND
    assert "default/cams" in found["p1"][1]


def test_who_names_a_claim_that_is_being_deleted_is_told_and_goes_once_it_is_made_anew() -> None:
    world = a_world(a_queue("a", onvif=(1, 1)), a_gated_pod("p", claims=["p"]))
    put(world, replace(claim := a_claim("p"), is_deleting=True))
    keeper = GateKeeper(world)

    assert names(decide(keeper, NOW)) == []

    (told,) = keeper.pending_conditions.take(9)
    assert told.reason == WaitReason.CLAIM_NOT_FOUND
    assert told.message == (
        "The pod waits until ResourceClaim default/p, which is terminating, is gone and created"
        " again."
    )
    world.delete_claim(claim.uid)
    keeper.note(ClaimChanged(claim.uid))
    put(world, anew := a_claim("p", uid="another"))
    keeper.note(ClaimChanged(anew.uid))
    assert names(decide(keeper, NOW)) == ["p"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_claim_that_begins_to_be_deleted_takes_who_names_it_out_of_line(count: int) -> None:
    pods = [a_gated_pod(f"p{number}", claims=["c"]) for number in range(count)]
    world = a_world(a_queue("a", onvif=(0, 0)), *pods, claim := a_claim("c"))
    keeper = GateKeeper(world)
    decide(keeper, NOW)
    put(world, replace(claim, is_deleting=True), a_queue("a", onvif=(1, 1)))
    keeper.note(ClaimChanged(claim.uid))
    keeper.note(QueueChanged(QueueName("a")))

    assert names(decide(keeper, NOW)) == []
    assert [keeper.place(pod.uid) for pod in pods] == [None] * count
    assert [told.reason for told in keeper.pending_conditions.take(9)] == [
        WaitReason.CLAIM_NOT_FOUND
    ] * count


# What is read of pods.


def test_gates_priority_and_condition_are_read() -> None:
    condition = {"type": "moorage.dev/Admitted", "status": "False", "reason": "OverLimit"}
    pod = a_gated_pod("a", spec={"priority": 7}, status={"conditions": [condition]})

    assert (pod.gates, pod.priority, pod.admission) == ((QUOTA_GATE,), 7, "OverLimit")
    assert pod.is_gated
    assert not pod.deleting


def test_a_pod_without_devices_is_kept_while_it_is_at_our_gate() -> None:
    """Nobody else would remove the gate."""
    elsewhere = {"schedulerName": "default-scheduler"}
    gated = project_pod(a_pod_object("a", spec={"schedulingGates": GATES, **elsewhere}), SETTINGS)

    assert isinstance(gated, PodView)
    assert project_pod(a_pod_object("a", spec=elsewhere), SETTINGS) is None
    removals = decide(GateKeeper(a_world(gated)), NOW)
    assert names(removals) == ["a"]


def test_a_pod_on_its_way_out_is_not_gated() -> None:
    obj = a_pod_object("a", spec={"schedulingGates": GATES})
    obj["metadata"]["deletionTimestamp"] = "2026-11-21T11:00:00Z"
    pod = pod_view(obj, SETTINGS)

    assert isinstance(pod, PodView)
    assert pod.deleting
    assert not pod.is_gated


@pytest.mark.parametrize(
    ("spec", "status", "path"),
    [
        ({"schedulingGates": [{"name": 1}]}, {}, "spec.schedulingGates[0].name"),
        ({"schedulingGates": "x"}, {}, "spec.schedulingGates"),
        ({"schedulingGates": GATES}, {"conditions": 1}, "status.conditions"),
    ],
)
def test_odd_gates_name_the_field(spec: dict[str, Any], status: Any, path: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        pod_view(a_pod_object("a", spec=spec, status=status), SETTINGS)

    assert raised.value.path == path


def test_who_may_not_borrow_yet_goes_soon_after_the_back_off() -> None:
    world = a_world(a_queue("a", onvif=(0, 2)), pod := a_gated_pod("a"))
    world.assumptions.backoffs.evicted(equivalence_class(pod, world.facts), NOW)
    keeper = GateKeeper(world)
    assert decide(keeper, NOW) == ()

    over = NOW + timedelta(minutes=1)
    assert decide(keeper, over - timedelta(seconds=1)) == ()
    assert keeper.next_look() == moment(over) + 4

    assert names(decide(keeper, over + timedelta(seconds=4))) == ["a"]


def test_who_waits_for_room_has_its_turn_before_later_ones_that_came_with_it() -> None:
    world = a_world(a_queue("a", onvif=(0, 1)), a_queue("b"))
    running = fill(world, "runs", "a", 1)
    early = a_gated_pod("early", created="2026-11-21T10:00:00Z")
    keeper = GateKeeper(world)
    told(world, keeper, early)
    assert decide(keeper, NOW) == ()

    told(world, keeper, a_gated_pod("late", queue="b", requests={}, claims=["cam"]))
    end(world, keeper, running)
    world.put_claim(a_claim("cam"))
    keeper.note(ClaimChanged(claim_uid("cam")))

    assert names(decide(keeper, NOW))[0] == "early"


def test_a_pod_of_another_scheduler_takes_nobodys_turn_and_is_told_why_it_waits() -> None:
    world = a_world(a_queue("a", onvif=(0, 1)))
    keeper = GateKeeper(world)
    first = {"schedulerName": "kai-scheduler", "priority": 9}
    told(world, keeper, a_gated_pod("other", spec=first))
    told(world, keeper, a_gated_pod("mine"))

    assert names(decide(keeper, NOW)) == ["mine"]
    assert keeper.short_of_room() == []
    assert keeper.place(pod_uid("other")) is None
    (condition,) = keeper.pending_conditions.take(9)
    assert (condition.name, condition.reason) == ("other", WaitReason.OTHER_SCHEDULER)
    assert condition.message == (
        'The pod is in no queue. Pod default/other: spec.schedulerName: is "kai-scheduler", and'
        ' this is the scheduler "moorage". Create the pod anew.'
    )


def test_a_pod_of_another_scheduler_completes_no_group() -> None:
    world = a_world(a_queue("a", onvif=(0, 9)))
    world.put_group(PodGroupView("default", "g", NO_QUEUE, 2))
    keeper = GateKeeper(world)
    grouped: dict[str, Any] = {"annotations": {"pod-group-name": "g"}}
    told(world, keeper, a_gated_pod("other", spec={"schedulerName": "kai-scheduler"}, **grouped))
    told(world, keeper, a_gated_pod("mine", **grouped))

    assert decide(keeper, NOW) == ()
