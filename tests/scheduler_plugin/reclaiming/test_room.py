"""Who goes for a pod that waits for room: by the rules, one case each."""

from __future__ import annotations

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted
from scheduler_plugin.objects.names import QUOTA_GATE, Reason
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.held_placements import hold_of
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from tests.scheduler_plugin.builders import (
    a_pod,
    a_queue,
    a_world,
    admit,
    an_allocated_claim,
    pod_uid,
    put,
    refusal,
    verdict,
)
from tests.scheduler_plugin.reclaiming.builders import (
    a_full_world,
    a_used_pod,
    decided,
    taken,
    use,
    waiting,
)

FULL = [use("robots", "r1"), use("robots", "r2"), use("robots", "r3")]
QUOTAS = {"mine": (1, 3), "robots": (1, 3)}


def test_a_queue_within_its_quota_gets_a_claim_of_one_that_is_over_it() -> None:
    world = a_full_world(*FULL, waiting(), **QUOTAS)

    decision = decided(world)

    assert isinstance(decision, Targets)
    assert len(decision.pods) == 1
    assert decision.sentence == (
        'Pod default/w of queue "mine" is within the share of onvif that is guaranteed to its'
        ' queue. So ResourceClaim default/r1 of queue "robots" (priority 0) is given up by all its'
        " users (1 pod)."
    )


@pytest.mark.parametrize(
    ("mine", "robots", "goes"),
    [((1, 3), (2, 3), 1), ((1, 3), (3, 3), 1), ((0, 3), (1, 3), 0), ((2, 3), (-1, -1), 1)],
)
def test_quotas_say_whether_anybody_goes(
    mine: tuple[int, int], robots: tuple[int, int], goes: int
) -> None:
    assert len(taken(a_full_world(*FULL, waiting(), mine=mine, robots=robots))) == goes


def test_a_queue_that_would_be_over_its_quota_gets_nothing() -> None:
    world = a_full_world(
        use("robots", "r1"), use("robots", "r2"), use("mine", "m1"), waiting(), **QUOTAS
    )

    decision = decided(world)

    assert isinstance(decision, NoCandidates)
    assert decision.unmet is None
    assert 'queue "mine" would be over its quota with it' in decision.sentence


def test_the_queue_farthest_over_its_quota_gives_first() -> None:
    world = a_full_world(
        use("others", "o1"),
        use("robots", "r1"),
        use("robots", "r2"),
        waiting(),
        mine=(1, 3),
        robots=(0, 3),
        others=(0, 3),
    )

    assert taken(world) in (["r1"], ["r2"])


def test_then_the_lowest_priority_and_then_the_youngest() -> None:
    old, young = "2026-11-21T11:00:00Z", "2026-11-21T11:50:00Z"
    low = [use("robots", "r1", since=old), use("robots", "r2", since=young)]
    world = a_full_world(*low, use("robots", "r3", priority=5, since=young), waiting(), **QUOTAS)
    assert taken(world) == ["r2"]

    put(world, a_used_pod("r2", "robots", "r2", priority=7, since=young))

    assert taken(world) == ["r1"]


def test_all_users_of_a_claim_go_as_one_set() -> None:
    shared = use("robots", "r1", ("f1", "others"), ("f2", "others"))
    quotas = {"mine": (1, 3), "robots": (1, 3), "others": (0, 0)}
    world = a_full_world(
        shared,
        use("robots", "r2", priority=9),
        use("robots", "r3", priority=9),
        waiting(),
        **quotas,
    )
    assert taken(world) == ["f1", "f2", "r1"]


def test_whoever_is_protected_stays_and_the_sentence_says_why() -> None:
    world = a_full_world(
        use("robots", "r1", non_preemptible=True),
        use("robots", "r2"),
        use("robots", "r3", ("w2", "mine")),
        waiting(),
        waiting(name="unbound"),
        **QUOTAS,
    )
    put(world, an_allocated_claim("r2", "r2", "not-known", queue="robots"))
    decision = decided(world, held_back={pod_uid("w2"), pod_uid("r3")})

    assert isinstance(decision, NoCandidates)
    assert decision.unmet == "mine"
    assert decision.sentence == (
        'Pod default/w waits: queue "root" has no room below its limit for 1 onvif more, and'
        " no other pod can be evicted: 1 claims or pods have users that are not preemptible; 1"
        " claims or pods have users that are not known, or are not bound yet; 1 claims or pods are"
        " used by the waiting pod, or by pods of its queue that go before it; A budget needs it."
    )


def test_a_budget_sends_the_choice_to_the_next() -> None:
    world = a_full_world(*FULL, waiting(), **QUOTAS)
    first = taken(world)

    second = taken(world, held_back={pod_uid(first[0])})

    assert len(second) == 1
    assert second != first


def test_what_is_on_its_way_out_is_counted_on() -> None:
    world = a_full_world(*FULL, waiting(), **QUOTAS)

    put(world, a_used_pod("r3", "robots", "r3", deleting=True))

    # It is no place where it could be already, and is not.
    assert decided(world) == InProgress(holds=(), is_guaranteed=True)


def test_a_claim_whose_last_user_is_gone_is_on_its_way_until_it_is_cleared() -> None:
    world = a_full_world(*FULL, waiting(), **QUOTAS)

    world.delete_pod(pod_uid("r3"))

    assert isinstance(decided(world), InProgress)


def test_a_set_that_was_begun_is_finished_first() -> None:
    world = a_full_world(
        use("robots", "r1", priority=-5),
        use("robots", "r2", ("f1", "others"), priority=5),
        use("robots", "r3", priority=-5),
        waiting(),
        mine=(1, 3),
        robots=(1, 3),
        others=(0, 0),
    )
    put(world, a_used_pod("f1", "others", "r2", deleting=True))

    # Foreign users that are gone already suffer no more.
    assert taken(world) == ["r2"]


def test_as_many_go_as_are_needed_and_no_more() -> None:
    big = use("robots", "big", cost=2, priority=9)
    world = a_full_world(use("robots", "r1"), big, waiting(cost=2), mine=(2, 3), robots=(0, 3))

    assert taken(world) == ["big"]


def test_a_claim_that_is_more_than_its_owner_has_beyond_the_quota_is_no_shield() -> None:
    big, small = use("robots", "big", cost=2), use("robots", "r1", priority=9)
    world = a_full_world(big, small, waiting(), mine=(1, 3), robots=(2, 3))

    assert taken(world) == ["big"]


def test_users_stay_for_the_least_time_of_their_queue() -> None:
    asks = {"reclaimMinRuntime": "40m", "preemptMinRuntime": "40m"}
    young = [use("robots", f"r{n}", since="2026-11-21T11:30:00Z") for n in range(2)]
    old = use("robots", "old", since="2026-11-21T11:10:00Z", priority=9)
    world = a_full_world(*young, old, waiting(), mine=(1, 3))
    put(world, a_queue("robots", parent="root", onvif=(0, 3), **asks))
    assert taken(world) == ["old"]

    put(world, a_used_pod("old", "robots", "old", since="2026-11-21T11:30:00Z"))

    decision = decided(world)
    assert isinstance(decision, NoCandidates)
    assert (
        "3 claims or pods have users that have not run for the minimum runtime" in decision.sentence
    )


def test_nobody_goes_where_not_enough_can() -> None:
    world = a_full_world(*FULL, waiting(cost=3), mine=(3, 3), robots=(1, 3))

    decision = decided(world)

    assert isinstance(decision, NoCandidates)
    assert decision.unmet == "mine"
    assert decision.sentence == (
        'Pod default/w waits: queue "root" has no room below its limit for 3 onvif more, queue'
        ' "mine" would have more than its share: the quotas below the queue above it add up to more'
        " than is guaranteed to that, and no pod of this queue has a lower priority."
    )


def test_what_another_pod_of_the_queue_was_promised_counts_against_its_quota() -> None:
    world = a_full_world(*FULL, waiting(), waiting(name="w2"), **QUOTAS)
    decision = decided(world)
    assert isinstance(decision, Targets)

    world.assumptions.hold(decision.hold)

    assert isinstance(decided(world, "w2"), NoCandidates)
    assert len(taken(world)) == 1


def test_nobody_joins_a_claim_whose_users_leave_it_for_another_pod() -> None:
    """Such as the evicted pod's successor: the claim would never be free."""
    successor = a_pod("next", queue="robots", claims=["r1"])
    world = a_full_world(*FULL, waiting(), successor, **QUOTAS)
    decision = decided(world)
    assert isinstance(decision, Targets)
    assert [pod.name for pod in decision.pods] == ["r1"]
    put(world, a_used_pod("r1", "robots", "r1", deleting=True))
    assert isinstance(verdict(world, successor), Admitted)

    world.assumptions.hold(decision.hold)

    assert refusal(world, successor).reason is Reason.DEVICE_HELD
    world.end_hold(decision.hold.pod)
    assert isinstance(verdict(world, successor), Admitted)


def test_for_a_claim_that_is_on_its_way_to_one_user_nobody_goes_for_another() -> None:
    sharer = a_pod("w2", queue="mine", claims=["w"], spec={"priority": 0})
    world = a_full_world(*FULL, waiting(), sharer, mine=(3, 3), robots=(0, 3))
    decision = decided(world)
    assert isinstance(decision, Targets)

    world.assumptions.hold(decision.hold)

    assert taken(world, "w2") == []
    assert len(taken(world)) == 1


def test_a_pod_goes_though_it_shares_a_claim_of_a_queue_within_its_quota() -> None:
    """It is what its own queue has above its share, and that queue keeps its claim."""
    both = [
        an_allocated_claim("r1", "r1", queue="robots"),
        an_allocated_claim("o1", "r1", queue="others"),
        a_used_pod("r1", "robots", "r1", "o1"),
    ]
    quotas = {"mine": (1, 3), "robots": (0, 3), "others": (1, 3)}
    world = a_full_world(both, use("robots", "r2", priority=9), waiting(), **quotas)

    assert taken(world) == ["r1"]


def test_slots_of_the_device_plugin_are_taken_with_their_pod() -> None:
    slots = {"akri.sh/onvif": "1"}
    used = [a_used_pod(f"s{n}", "robots", requests=slots, priority=n) for n in range(3)]
    asks = a_pod("w", queue="mine", requests=slots)
    world = a_full_world(used, asks, **QUOTAS)

    assert taken(world) == ["s0"]


class TestWithinAQueue:
    """Preempt: a higher priority goes first."""

    def world(self, priority: int, *objects: object) -> World:
        mine = [use("mine", "m1", priority=5), use("mine", "m2", priority=3)]
        return a_full_world(*mine, waiting(priority=priority), *objects, mine=(1, 2), robots=(1, 3))

    def test_the_lowest_goes_for_a_higher_one(self) -> None:
        assert taken(self.world(4)) == ["m2"]

    def test_nobody_goes_for_one_that_is_not_higher(self) -> None:
        assert taken(self.world(3)) == []

    def test_a_queue_below_keeps_its_quota(self) -> None:
        world = self.world(4)
        put(
            world,
            a_queue("mine-below", parent="mine", onvif=(1, 2)),
            an_allocated_claim("m2", "m2", queue="mine-below"),
            a_used_pod("m2", "mine-below", "m2", priority=3),
        )
        assert taken(world) == []

        put(world, a_queue("mine-below", parent="mine", onvif=(0, 2)))

        assert taken(world) == ["m2"]

    def test_not_across_branches(self) -> None:
        world = a_full_world(*FULL, waiting(priority=9), mine=(0, 3), robots=(3, 3))

        assert taken(world) == []


class TestInATree:
    """Each queue up to where the paths meet has a say."""

    def world(self, team: tuple[int, int], rivals: tuple[int, int]) -> World:
        return a_world(
            a_queue("root", onvif=(2, 2)),
            a_queue("team", parent="root", onvif=team),
            a_queue("mine", parent="team", onvif=(1, 2)),
            a_queue("sister", parent="team", onvif=(0, 2)),
            a_queue("rivals", parent="root", onvif=rivals),
            a_queue("robots", parent="rivals", onvif=(0, 2)),
            *use("sister", "s1"),
            *use("robots", "r1", since="2026-11-21T11:59:00Z"),
            *waiting(),
        )

    def test_a_sister_gives_where_the_team_would_be_over_its_quota(self) -> None:
        assert taken(self.world(team=(1, 2), rivals=(0, 2))) == ["s1"]

    def test_a_cousin_gives_where_the_team_stays_within_it(self) -> None:
        assert taken(self.world(team=(2, 2), rivals=(0, 2))) in (["r1"], ["s1"])

    def test_a_cousin_keeps_what_its_team_is_guaranteed(self) -> None:
        assert taken(self.world(team=(2, 2), rivals=(1, 2))) == ["s1"]


def test_a_pod_that_is_admitted_wants_nothing() -> None:
    world = a_full_world(use("robots", "r1"), waiting(), **QUOTAS)

    assert isinstance(decided(world), InProgress)


def test_a_pod_that_is_not_bound_yet_is_no_user() -> None:
    world = a_full_world(
        *FULL, waiting(), a_pod("joins", queue="robots", claims=["r1"]), mine=(1, 3), robots=(0, 3)
    )
    pod = world.facts.pod(pod_uid("joins"))
    assert pod is not None
    admit(world, pod)

    assert taken(world) == ["r1"]


def test_nobody_goes_for_a_pod_of_another_scheduler() -> None:
    """At our gate or not: no decision of ours would bind it, and what is freed is another's."""
    for gates in ([], [{"name": QUOTA_GATE}]):
        claim, _ = waiting()
        spec = {"schedulerName": "kai-scheduler", "schedulingGates": gates}
        other = a_pod("w", queue="mine", claims=["w"], spec=spec)
        decision = decided(a_full_world(*FULL, [claim, other], **QUOTAS))

        assert isinstance(decision, NoCandidates)
        assert decision.sentence == (
            'Pod default/w: spec.schedulerName: is "kai-scheduler", and this is the scheduler'
            ' "moorage".'
        )
        assert decision.unmet is None


def test_nothing_is_held_for_a_pod_of_another_scheduler() -> None:
    """Its condition may be of an earlier version, or somebody's invention."""
    pod = a_pod("w", queue="mine", claims=["w"], spec={"schedulerName": "kai-scheduler"})

    assert hold_of(pod, a_full_world(*FULL, waiting(), **QUOTAS)) is None


def test_pods_of_a_namespace_that_a_queue_does_not_admit_ask_for_none_of_its_share() -> None:
    closed = a_queue(
        "b", parent="p", onvif=(4, -1), namespaceSelector={"matchLabels": {"may": "use"}}
    )
    queues = [
        a_queue("root", onvif=(6, 6)),
        a_queue("p", parent="root", onvif=(4, -1)),
        a_queue("a", parent="p", onvif=(4, -1)),
        a_queue("c", parent="root", onvif=(0, -1)),
    ]
    used = [*(use("a", f"a{n}") for n in range(2)), *(use("c", f"c{n}") for n in range(4))]
    phantoms = [waiting("b", f"phantom{n}") for n in range(4)]
    objects = [each for found in (*used, *phantoms, waiting("a", "w")) for each in found]
    world = a_world(*queues, closed, *objects)

    assert len(taken(world)) == 1
    put(world, a_queue("b", parent="p", onvif=(4, -1)))
    assert taken(world) == []
