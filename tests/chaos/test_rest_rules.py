"""What the checker finds at rest: each rule has an example that keeps it, and one that does not."""

from __future__ import annotations

import pytest

from tests.chaos import made
from tests.chaos.objects import (
    ADMITTED,
    GATE,
    POD_GROUP,
    PREEMPTIBILITY,
    Object,
)
from tests.chaos.rest_rules import rest_findings

USER = made.pod("p", "red", "c", on="a")


def rules(*bodies: Object) -> set[str]:
    return {finding.rule for finding in rest_findings(made.snapshot(made.configuration(), *bodies))}


def test_a_claim_that_is_charged_once_is_in_order() -> None:
    assert rules(made.queue("red", usage={"echo": 1}), made.claim("c", "red", USER), USER) == set()


def test_a_claim_of_several_slots_and_users_is_charged_once() -> None:
    other = made.pod("q", "red", "c", on="a")
    claim = made.claim("c", "red", USER, other, slots=3)
    assert rules(made.queue("red", usage={"echo": 3}), claim, USER, other) == set()
    assert rules(made.queue("red", usage={"echo": 6}), claim, USER, other) == {"books"}


def test_usage_counts_along_the_tree() -> None:
    tree = (
        made.queue("org", usage={"echo": 1}),
        made.queue("red", parent="org", usage={"echo": 1}),
    )
    assert rules(*tree, made.claim("c", "red", USER), USER) == set()
    assert "books" in rules(made.queue("org"), tree[1], made.claim("c", "red", USER), USER)


def test_a_claim_in_use_without_an_owner_is_found() -> None:
    assert rules(made.queue("red"), made.claim("c", "", USER), USER) == {"one-owner"}


TRAIN = made.workload("train")
MEMBERS = [made.member(made.pod(name, "red", "c", on="a"), "train") for name in ("m", "n")]
OF_TRAIN = made.for_workload(made.claim("c", "red", MEMBERS[0], slots=3), "train")


def test_a_claim_of_a_podgroup_is_charged_once_for_all_of_its_pods() -> None:
    queue = made.queue("red", usage={"echo": 3})
    assert rules(queue, TRAIN, OF_TRAIN, *MEMBERS) == set()
    assert rules(made.queue("red", usage={"echo": 6}), TRAIN, OF_TRAIN, *MEMBERS) == {"books"}


def test_a_claim_of_a_podgroup_whose_pods_ended_is_found() -> None:
    queue = made.queue("red", usage={"echo": 3})
    assert rules(queue, TRAIN, OF_TRAIN) == {"left-over"}


def test_an_entry_of_another_podgroup_of_the_name_stands_for_no_pod() -> None:
    queue, again = made.queue("red", usage={"echo": 3}), made.workload("train", "uid-again")
    assert rules(queue, again, OF_TRAIN, *MEMBERS) == {"left-over"}


def test_a_pod_of_a_podgroup_that_waits_for_its_like_of_another_queue_is_told_so() -> None:
    queues = (made.queue("red", usage={"echo": 3}), made.queue("blue"))
    other = made.member(made.pod("o", "blue", "c"), "train")
    found = (*queues, TRAIN, OF_TRAIN, MEMBERS[0], gated(other, "PodGroupQueueMismatch"))
    assert rules(*found) == set()
    alike = made.member(made.pod("o", "red", "c"), "train")
    found = (*queues, TRAIN, OF_TRAIN, MEMBERS[0], gated(alike, "PodGroupQueueMismatch"))
    assert rules(*found) == {"fits-and-waits"}


def test_a_pod_whose_podgroup_is_gone_is_kube_schedulers() -> None:
    pod = made.member(made.pod("o", "red"), "train")
    pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
    assert rules(made.queue("red"), made.claim("c"), pod) == set()
    assert rules(made.queue("red"), made.claim("c"), TRAIN, pod) != set()


def test_a_foreign_non_preemptible_pod_is_found() -> None:
    other = made.pod("q", "blue", "c", on="a", priority=100)
    queues = (made.queue("red", usage={"echo": 1}), made.queue("blue"))
    found = rules(*queues, made.claim("c", "red", USER, other), USER, other)
    assert found == {"foreign-non-preemptible"}


def test_a_queue_that_is_charged_and_may_be_deleted_is_found() -> None:
    queue = made.queue("red", usage={"echo": 1})
    queue["metadata"]["finalizers"] = []
    assert rules(queue, made.claim("c", "red", USER), USER) == {"books"}


def test_a_queue_that_is_gone_and_charged_is_found() -> None:
    assert rules(made.claim("c", "red", USER), USER) == {"books"}


WAITS = made.told(made.pod("w", "red", "w"), "0/1 nodes are available")
WANTED = made.claim("w")


def test_the_first_non_preemptible_user_needs_quota_for_a_claim_that_is_charged() -> None:
    claim = made.claim("c", "red", USER)
    waits = made.told(made.pod("w", "red", "c", priority=100), "NonPreemptibleOverQuota")
    assert rules(made.queue("red", usage={"echo": 1}), claim, USER, waits) == set()
    quota = made.queue("red", 1, usage={"echo": 1})
    assert rules(quota, claim, USER, waits) == {"fits-and-waits"}


@pytest.mark.parametrize("word", ["Gone", "NotKnownYet"])
def test_of_a_group_that_is_not_there_it_may_be_told_that_it_is_gone_or_to_come(word: str) -> None:
    pod = gated(made.pod("w", "", "w"), word)
    pod["metadata"]["annotations"] = {POD_GROUP: "crew"}
    assert rules(made.queue("red"), made.published("echo-x"), WANTED, pod) == set()


def gated(pod: Object, word: str) -> Object:
    """At the gate, and told why."""
    spec = {**pod["spec"], "schedulingGates": [{"name": GATE}]}
    told = {"type": ADMITTED, "status": "False", "reason": word}
    return {**pod, "spec": spec, "status": {"phase": "Pending", "conditions": [told]}}


def test_room_that_was_promised_to_a_pod_without_a_device_may_be_called_used() -> None:
    queue, behind = made.queue("red", 1, 1), gated(made.pod("x", "red", "x"), "OverLimit")
    others = (made.claim("w"), made.claim("x"), behind)
    assert rules(queue, *others, WAITS) == set()
    assert rules(queue, *others) == {"false-reason"}


def test_what_a_binding_that_never_came_reserved_is_charged_to_nobody_yet() -> None:
    waits = made.told(made.pod("w", "red", "w"), "OverLimit")
    queue, left = made.queue("red", 1, 1, usage={"echo": 1}), made.claim("w", "", waits)
    used = (made.claim("c", "red", USER), USER)
    assert rules(queue, made.published("echo-w"), *used, left, waits) == set()


def test_a_pod_that_fits_and_waits_is_found() -> None:
    assert rules(made.queue("red"), made.published("echo-x"), WANTED, WAITS) == {"fits-and-waits"}


def test_a_claim_that_is_being_deleted_keeps_whoever_is_not_there_yet() -> None:
    claim = made.claim("w", "red", USER)
    going = {
        **claim,
        "metadata": {**claim["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }
    queue = made.queue("red", usage={"echo": 1})
    assert rules(queue, made.published("echo-w"), claim, USER, WAITS) == {"fits-and-waits"}
    assert rules(queue, made.published("echo-w"), going, USER, WAITS) == set()


@pytest.mark.parametrize("slots", [0, 1])
def test_a_pod_waits_for_a_device(slots: int) -> None:
    """None is published, or another claim has it."""
    taken = [made.claim("c", "red", USER), USER] if slots else []
    queue = made.queue("red", usage={"echo": 1} if slots else {})
    devices = made.published("echo-c") if slots else made.published()
    assert rules(queue, devices, *taken, WANTED, WAITS) == set()


def test_a_pod_waits_at_its_limit_and_has_to_be_told() -> None:
    at_limit = (made.queue("red", limit=0), made.published("echo-x"), WANTED)
    assert rules(*at_limit, WAITS) == set()
    assert rules(*at_limit, made.pod("w", "red", "w")) == {"no-reason"}


def test_a_weight_of_zero_ends_at_the_quota() -> None:
    queue = made.queue("red", resources=[made.entry(0, -1, weight=0)])
    assert rules(queue, made.published("echo-x"), WANTED, WAITS) == set()


def test_a_gated_pod_is_told_a_reason_that_is_true() -> None:
    gated = made.pod("w", "red", "w")
    gated["spec"]["schedulingGates"] = [{"name": "moorage.dev/quota"}]
    gated["status"]["conditions"] = [{"type": "moorage.dev/Admitted", "reason": "OverLimit"}]
    devices = made.published("echo-x")
    assert rules(made.queue("red", limit=0), devices, WANTED, gated) == set()
    assert rules(WANTED, devices, gated) == {"false-reason"}


@pytest.mark.parametrize(("quota", "found"), [(0, set()), (1, {"fits-and-waits"})])
def test_a_pod_that_borrows_may_wait_for_the_end_of_a_back_off(quota: int, found: set[str]) -> None:
    waiting = made.told(made.pod("w", "red", "w"), "0/1 nodes: BorrowingBackoff: it was evicted")
    assert rules(made.queue("red", quota=quota), made.published("echo-x"), WANTED, waiting) == found


def in_group(name: str, claim: str) -> Object:
    """A gated pod of the group `g`, with a queue by it, which is told that a limit keeps it."""
    member = made.pod(name, "", claim)
    member["metadata"] |= {"labels": {}, "annotations": {"pod-group-name": "g"}}
    member["spec"]["schedulingGates"] = [{"name": "moorage.dev/quota"}]
    member["status"]["conditions"] = [{"type": "moorage.dev/Admitted", "reason": "OverLimit"}]
    return member


def test_those_who_go_together_wait_for_room_for_all() -> None:
    members = (in_group("v", "v"), in_group("w", "w"), made.claim("v"), WANTED)
    devices, group = made.published("echo-x", "echo-y"), made.group("g", "red", least=2)
    assert rules(made.queue("red", limit=1), devices, group, *members) == set()
    assert rules(made.queue("red", limit=2), devices, group, *members) == {"fits-and-waits"}


def test_pods_of_a_group_that_is_gone_are_told_so() -> None:
    member = in_group("w", "w")
    assert rules(made.queue("red"), made.published("echo-x"), WANTED, member) == {"false-reason"}
    member["status"]["conditions"][0]["reason"] = "Gone"
    assert rules(made.queue("red"), made.published("echo-x"), WANTED, member) == set()


def test_an_opt_out_keeps_a_pod_off() -> None:
    claim = made.claim("w", "blue")
    queues = (made.queue("red"), made.queue("blue", claimSharing={"policy": "Deny"}))
    assert rules(*queues, made.published("echo-x"), claim, WAITS) == set()


BORROWED = (made.claim("c", "blue", made.pod("p", "blue", "c", on="a")), made.published("echo-c"))


def test_a_queue_below_its_quota_gets_a_device_back() -> None:
    user = made.pod("p", "blue", "c", on="a")
    queues = (made.queue("red", quota=1), made.queue("blue", usage={"echo": 1}))
    assert rules(*queues, *BORROWED, user, WANTED, WAITS) == {"guarantee"}


def test_nobody_goes_if_that_does_not_help() -> None:
    """The pod wants one node, and the device is on another."""
    user = made.pod("p", "blue", "c", on="a")
    waiting = {**WAITS, "spec": {**WAITS["spec"], "nodeSelector": {"kubernetes.io/hostname": "b"}}}
    queues = (made.queue("red", quota=1), made.queue("blue", usage={"echo": 1}))
    assert rules(*queues, *BORROWED, user, WANTED, made.node("b"), waiting) == set()


@pytest.mark.parametrize(("priority", "found"), [(0, set()), (1, {"guarantee"})])
def test_nobody_goes_for_his_equal_in_one_queue(priority: int, found: set[str]) -> None:
    """A pod of the queue that waits uses what another queue is charged for (seed 4711)."""
    user = made.pod("p", "red", "c", on="a")
    queues = (made.queue("red", quota=1), made.queue("blue", usage={"echo": 1}))
    waiting = made.pod("w", "red", "w", priority=priority)
    pod = made.told(waiting, "0/1 nodes are available")
    assert rules(*queues, *BORROWED, user, WANTED, pod) == found


def test_a_queue_that_is_told_what_is_not_true_is_found() -> None:
    user = made.pod("p", "blue", "c", on="a")
    red = made.queue("red", quota=1)
    red["status"]["conditions"] = [{"type": "QuotaUnmet", "status": "True"}]
    queues = (red, made.queue("blue", usage={"echo": 1}))
    assert rules(*queues, *BORROWED, user, WANTED, WAITS) == {"guarantee"}


def test_nobody_goes_who_has_his_quota_or_may_not_go() -> None:
    user = made.pod("p", "blue", "c", on="a")
    within = (made.queue("red", quota=1), made.queue("blue", quota=1, usage={"echo": 1}))
    assert rules(*within, *BORROWED, user, WANTED, WAITS) == set()
    user["metadata"]["labels"][PREEMPTIBILITY] = "non-preemptible"
    held = (made.queue("red", quota=1), made.queue("blue", usage={"echo": 1}, held={"echo": 1}))
    assert rules(*held, *BORROWED, user, WANTED, WAITS) == set()


@pytest.mark.parametrize("others", [[], [in_group("v", "lost")]])
def test_a_pod_without_a_gate_waits_for_the_others_of_its_group(others: list[Object]) -> None:
    """Of two that go at one time the other is not there, or something keeps it."""
    alone = in_group("w", "w")
    del alone["spec"]["schedulingGates"]
    devices, group = made.published("echo-x", "echo-y"), made.group("g", "red", least=2)
    pod = made.told(alone, "PodGroup is admitted as a whole, 2 pods together, and has 1.")
    assert "fits-and-waits" not in rules(made.queue("red"), devices, group, WANTED, pod, *others)
