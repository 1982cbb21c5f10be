"""Pods that go together or not at all: as those who wait, and as those who have to go."""

from __future__ import annotations

from typing import Any

from hypothesis import assume as assume_that
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.names import NO_QUEUE, POD_GROUP_ANNOTATION
from scheduler_plugin.objects.pods import PodGroupView
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    admit,
    claim_uid,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.builders import (
    FULL,
    a_full_world,
    a_used_pod,
    decided,
    is_still_due,
    taken,
    use,
    waiting,
)

QUOTAS = {"mine": (2, 3), "robots": (0, 3)}


def of(group: str) -> dict[str, Any]:
    return {"annotations": {POD_GROUP_ANNOTATION: group}}


def a_world_with(*objects: object, groups: dict[str, int | None], **quotas: Any) -> World:
    world = a_full_world(*objects, **{**QUOTAS, **quotas})
    for name, least in groups.items():
        world.put_group(PodGroupView("default", name, NO_QUEUE, least))
    return world


def gang(*names: str, group: str = "train") -> list[Any]:
    return [each for name in names for each in waiting(name=name, **of(group))]


def working(*names: str, group: str = "job", **fields: Any) -> list[Any]:
    return [each for name in names for each in use("robots", name, **of(group), **fields)]


def test_what_a_group_lacks_is_freed_for_all_of_it_at_one_time() -> None:
    world = a_world_with(*FULL, gang("w", "w2"), groups={"train": 2})

    decision = decided(world)

    assert isinstance(decision, Targets)
    assert len(decision.pods) == 2
    assert [hold.name for hold in decision.holds] == ["Pod default/w", "Pod default/w2"]
    assert decision.sentence.startswith(
        'PodGroup default/train (2 pods) of queue "mine" is within the share of onvif that is'
        " guaranteed to its queue. So "
    )
    assert is_still_due(decision, world)


def test_nobody_goes_for_a_part_of_a_group() -> None:
    too_few = a_world_with(*FULL, gang("w"), groups={"train": 2})
    beyond = a_world_with(*FULL, gang("w", "w2"), groups={"train": 2}, mine=(1, 3))
    staying = [use("robots", "r1"), use("robots", "r2", non_preemptible=True)]
    staying.append(use("robots", "r3", non_preemptible=True))
    not_enough = a_world_with(*staying, gang("w", "w2"), groups={"train": 2})

    assert [taken(world) for world in (too_few, beyond, not_enough)] == [[], [], []]
    decision = decided(not_enough)
    assert isinstance(decision, NoCandidates)
    assert decision.unmet == "mine"


def test_a_claim_that_a_group_shares_is_wanted_once() -> None:
    pods = [a_pod(name, queue="mine", claims=["one"], **of("train")) for name in ("w", "w2", "w3")]
    world = a_world_with(*FULL, [a_claim("one"), *pods], groups={"train": 3}, mine=(1, 3))

    decision = decided(world)

    assert isinstance(decision, Targets)
    assert len(decision.pods) == 1
    assert [hold.name for hold in decision.holds] == ["Pod default/w"]


def test_what_is_held_for_a_group_is_enough_for_it_and_nobody_slips_in() -> None:
    world = a_world_with(*FULL, gang("w", "w2"), groups={"train": 2})
    decision = decided(world)
    assert isinstance(decision, Targets)
    for hold in decision.holds:
        world.hold(hold)
    for name in (pod.name for pod in decision.pods):
        put(world, a_used_pod(name, "robots", name, deleting=True))
    assert isinstance(decided(world), InProgress)
    assert isinstance(decided(world, "w2"), InProgress)
    for name in (pod.name for pod in decision.pods):
        world.delete_pod(pod_uid(name))
        world.delete_claim(claim_uid(name))

    put(world, *waiting("robots", "next"))
    successor = world.facts.pod(pod_uid("next"))
    assert successor is not None
    assert not isinstance(judge(successor, world.facts.claims_of(successor), world), Admitted)
    for name in ("w", "w2"):
        pod = world.facts.pod(pod_uid(name))
        assert pod is not None
        assume(pod, admit(world, pod), world, NOW)


def test_of_a_group_that_needs_them_all_no_one_is_taken_alone() -> None:
    world = a_world_with(
        working("g1", "g2"), use("robots", "r1", priority=1), waiting(), groups={"job": 2}
    )

    decision = decided(world)

    assert isinstance(decision, Targets)
    assert sorted(pod.name for pod in decision.pods) == ["g1", "g2"]
    (victim,) = decision.victims
    assert {claim.name for claim in victim.claims} == {"g1", "g2"}
    assert "with all of PodGroup default/job" in decision.sentence
    assert decision.sentence.endswith("is given up by all its users (2 pods).")
    assert is_still_due(decision, world)


def test_a_member_that_is_about_to_be_bound_spares_nobody() -> None:
    late = waiting("robots", "g3", **of("job"))
    world = a_world_with(working("g1", "g2"), late, waiting(), groups={"job": 2})
    pod = world.facts.pod(pod_uid("g3"))
    assert pod is not None
    assume(pod, admit(world, pod), world, NOW)

    assert taken(world) == ["g1", "g2"]


def test_whoever_names_a_group_that_is_not_there_is_not_spared() -> None:
    world = a_world_with(working("g1", "g2", "g3"), waiting(), groups={"another": 3})

    assert taken(world) == ["g1"]


def test_of_a_group_with_more_than_it_needs_one_is_taken() -> None:
    world = a_world_with(working("g1", "g2", "g3"), waiting(), groups={"job": 2})

    assert len(taken(world)) == 1


def test_a_group_that_is_disrupted_together_goes_whole_though_each_runs_alone() -> None:
    world = a_world_with(*working("r1", "r2", "r3"), waiting(), groups={})
    world.put_group(PodGroupView("default", "job", NO_QUEUE, 1, goes_whole=True))

    assert sorted(taken(world)) == ["r1", "r2", "r3"]


def test_of_a_group_with_one_more_than_it_needs_not_two_are_taken_apart() -> None:
    world = a_world_with(working("g1", "g2", "g3"), gang("w", "w2"), groups={"job": 2, "train": 2})

    decision = decided(world)

    assert isinstance(decision, Targets)
    assert sorted(pod.name for pod in decision.pods) == ["g1", "g2", "g3"]
    assert is_still_due(decision, world)


def test_a_group_goes_whole_where_its_quota_covers_a_part_of_it() -> None:
    world = a_world_with(working("g1", "g2", "g3"), waiting(), groups={"job": 3}, robots=(1, 3))

    assert taken(world) == ["g1", "g2", "g3"]


def test_a_group_stays_where_one_of_it_may_not_go() -> None:
    guarded = a_world_with(
        working("g1", "g2"), working("g3", non_preemptible=True), waiting(), groups={"job": 3}
    )

    assert taken(guarded) == []


def young_and_old(**least: str) -> World:
    """Two of three pods have run for an hour; the third came a minute ago, for one that failed."""
    old = working("g1", "g2", since="2026-11-21T11:00:00Z")
    new = working("g3", since="2026-11-21T11:59:00Z")
    world = a_world_with(old, new, waiting(), groups={"job": 2})
    put(world, a_queue("robots", parent="root", onvif=(0, 3), **least))
    return world


def test_the_least_time_of_a_group_counts_from_when_it_was_complete() -> None:
    assert taken(young_and_old(reclaimMinRuntime="30m")) == ["g3"]
    assert taken(young_and_old(reclaimMinRuntime="70m")) == []


def test_what_was_decided_is_not_carried_out_once_the_group_has_grown() -> None:
    world = a_world_with(
        working("g1", "g2"), use("robots", "r1", priority=1), waiting(), groups={"job": None}
    )
    decision = decided(world)
    assert isinstance(decision, Targets)

    put(world, *working("g3"))

    assert not is_still_due(decision, world)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3),
    waits=st.integers(1, 3),
    quota=st.integers(0, 3),
    robots=st.integers(0, 2),
)
def test_groups_are_left_whole_or_gone_and_those_that_wait_get_all_or_nothing(
    sizes: list[tuple[int, int]], waits: int, quota: int, robots: int
) -> None:
    """`sizes` are pods that run and how many of them are needed."""
    used = [
        each
        for number, (count, _) in enumerate(sizes)
        for each in working(*(f"g{number}-{k}" for k in range(count)), group=f"job{number}")
    ]
    groups: dict[str, int | None] = {f"job{n}": least for n, (_, least) in enumerate(sizes)}
    names = ["w", *(f"w{number}" for number in range(1, waits))]
    world = a_world_with(
        used,
        gang(*names),
        groups={**groups, "train": waits},
        mine=(quota, 3),
        robots=(robots, 3),
    )

    assume_that(quota + robots <= 3)
    decision = decided(world)

    if not isinstance(decision, Targets):
        return
    gone = {pod.name for pod in decision.pods}
    for number, (count, least) in enumerate(sizes):
        left = count - sum(name.startswith(f"g{number}-") for name in gone)
        assert left in (0, count) or left >= least
    total = sum(count for count, _ in sizes)
    assert waits <= quota
    assert total > robots
    assert total - len(gone) + waits <= 3
