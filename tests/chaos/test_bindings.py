"""What the checker finds of bindings: the state before each is known by the order of writes."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos import made
from tests.chaos.bindings import Change, History
from tests.chaos.objects import Object

WAITS, RUNS = made.pod("p", "red", "c"), made.pod("p", "red", "c", on="a")


def rules(*bodies: Object) -> set[str]:
    found = made.changes(made.namespace(), *bodies)
    return {finding.rule for finding in History().judge(found)}


def test_a_binding_within_the_limit_is_in_order() -> None:
    assert rules(made.queue("red", limit=1), WAITS, made.claim("c", "red", WAITS), RUNS) == set()


def test_a_binding_past_the_limit_is_found() -> None:
    other, its = made.pod("q", "red", "d", on="a"), made.claim("d", "red", made.pod("q", "red"))
    before = (made.queue("red", limit=1), WAITS, other, its)
    assert rules(*before, made.claim("c", "red", WAITS), RUNS) == {"over-limit"}


def test_a_device_counts_as_its_configuration_whatever_class_it_was_asked_by() -> None:
    other = made.pod("q", "red", "d", on="a")
    its = made.claim("d", "red", made.pod("q", "red"), of_class="lens")
    mine = made.claim("c", "red", WAITS, of_class="of-nobody")
    before = (made.queue("red", limit=1), made.published("echo-c"), WAITS)
    assert rules(*before, mine, RUNS) == set()
    assert rules(*before, other, its, mine, RUNS) == {"over-limit"}


def test_a_limit_of_an_ancestor_counts() -> None:
    tree = (made.queue("org", limit=0), made.queue("red", parent="org"))
    assert rules(*tree, WAITS, made.claim("c", "red", WAITS), RUNS) == {"over-limit"}


def test_who_joins_adds_nothing() -> None:
    other = made.pod("q", "red", "c", on="a")
    before = (made.queue("red", limit=0), other, WAITS)
    assert rules(*before, made.claim("c", "red", other, WAITS), RUNS) == set()


def test_who_joins_what_ended_pods_left_charged_adds_nothing() -> None:
    """As a PodGroup without pods, which keeps its claim."""
    first, runs = (made.member(made.pod("q", "red", "c", on=on), "train") for on in ("", "a"))
    kept = made.for_workload(made.claim("c", "red", first), "train")
    before = (made.queue("red", limit=1), made.workload("train"), first, kept, runs)
    ended = {**runs, "status": {"phase": "Succeeded"}}
    joined = made.claim("c", "red", WAITS)
    joined["status"]["reservedFor"] += kept["status"]["reservedFor"]
    lowered = (made.queue("red", limit=0), ended, WAITS)
    assert rules(*before, *lowered, joined, RUNS) == set()
    free = made.claim("c", "red")
    assert rules(*before, *lowered, free, joined, RUNS) == {"over-limit"}


def test_a_claim_that_had_devices_when_it_was_listed_is_judged_once_it_got_others() -> None:
    """Its pods may have ended before, and left it charged."""
    listed = made.claim("c", "red", made.pod("gone", "red"))
    joined, free = made.claim("c", "red", WAITS), made.claim("c", "red")
    for steps, found in (((listed, joined), set()), ((listed, free, joined), {"over-limit"})):
        bodies = (made.namespace(), made.queue("red", limit=0), WAITS, *steps, RUNS)
        row = [replace(each, is_exact=each.after is not listed) for each in made.changes(*bodies)]
        assert {finding.rule for finding in History().judge(row)} == found


def test_a_pod_of_a_podgroup_that_the_claim_is_reserved_for_adds_nothing() -> None:
    first, waits, runs = (
        made.member(pod, "train") for pod in (made.pod("q", "red", "c", on="a"), WAITS, RUNS)
    )
    claim = made.for_workload(made.claim("c", "red", first), "train")
    assert (
        rules(made.queue("red", limit=0), made.workload("train"), first, waits, claim, runs)
        == set()
    )
    assert rules(made.queue("red", limit=1), first, waits, claim, runs) == {"one-owner"}


def test_an_earlier_limit_may_be_judged_by_for_a_moment_and_no_longer() -> None:
    limits = (made.queue("red", limit=1), made.queue("red", limit=0))
    steps = (made.namespace(), *limits, WAITS, made.claim("c", "red", WAITS), RUNS)
    assert not [*History().judge(made.changes(*steps, pause=1))]
    assert rules(*steps) == {"over-limit"}


def test_non_preemptible_use_past_the_quota_is_found() -> None:
    waits, runs = (made.pod("p", "red", "c", on=on, priority=100) for on in ("", "a"))
    claim = made.claim("c", "red", waits)
    assert rules(made.queue("red", quota=1), waits, claim, runs) == set()
    assert rules(made.queue("red"), waits, claim, runs) == {"non-preemptible-over-quota"}


def test_a_claim_without_an_owner_is_found() -> None:
    assert rules(made.queue("red"), WAITS, made.claim("c", "", WAITS), RUNS) == {"one-owner"}


def test_an_opt_out_at_the_time_of_binding_is_found() -> None:
    owner = made.pod("q", "blue", "c", on="a")
    claim = made.claim("c", "blue", owner, WAITS)
    shares, denies = made.queue("blue"), made.queue("blue", claimSharing={"policy": "Deny"})
    assert rules(made.queue("red"), shares, owner, WAITS, claim, RUNS) == set()
    assert rules(made.queue("red"), denies, owner, WAITS, claim, RUNS) == {"opted-out"}
    excepted = made.queue("blue", claimSharing={"policy": "Deny", "queues": ["red"]})
    assert rules(made.queue("red"), excepted, owner, WAITS, claim, RUNS) == set()


def test_a_foreign_non_preemptible_pod_is_found() -> None:
    owner = made.pod("q", "blue", "c", on="a")
    waits, runs = (made.pod("p", "red", "c", on=on, priority=100) for on in ("", "a"))
    claim = made.claim("c", "blue", owner, waits)
    queues = (made.queue("red", quota=5), made.queue("blue", quota=5))
    assert rules(*queues, owner, waits, claim, runs) == {"foreign-non-preemptible"}


def test_what_was_missed_is_not_judged() -> None:
    found = made.changes(made.queue("red"), WAITS, made.claim("c", "", WAITS), RUNS)
    last = found[-1]
    found[-1] = Change(last.version, last.at, last.kind, last.key, last.after, is_exact=False)
    assert not [*History().judge(found)]
