"""What the checker finds of vendors' devices, which queues measure."""

from __future__ import annotations

import pytest

from tests.chaos import made
from tests.chaos import made_measures as measured
from tests.chaos.bindings import History
from tests.chaos.made_measures import fans, memory
from tests.chaos.measures import REMEMBERED, devices_of
from tests.chaos.objects import Object, Snapshot
from tests.chaos.rest_rules import rest_findings

USER, OTHER = made.pod("p", "red", "c", on="a"), made.pod("q", "red", "d", on="a")
PART = measured.claim("c", "red", USER, part="20Gi")
WHOLE = measured.noted(measured.claim("c", "red", USER), **{"gpu-memory": "80Gi"})
SLICE = measured.published("gpu-0")
EMPTY = measured.published()


def rules(*bodies: Object) -> set[str]:
    """At rest, where the device was published at some time."""
    found = made.snapshot(made.configuration(), *bodies)
    remembered = {REMEMBERED: devices_of(SLICE)}
    return {each.rule for each in rest_findings(Snapshot({**found.objects, **remembered}))}


def red(*entries: Object, **usage: int | str) -> Object:
    amounts = {name.replace("_", "-"): amount for name, amount in usage.items()}
    return measured.queue("red", *entries, usage=amounts)


def test_a_part_of_a_device_is_charged_as_it_is_and_once() -> None:
    assert rules(red(memory(), gpu_memory="20Gi"), SLICE, PART, USER) == set()
    assert rules(red(memory(), gpu_memory="80Gi"), SLICE, PART, USER) == {"books"}


def test_a_whole_device_is_charged_for_what_it_has() -> None:
    assert rules(red(memory(), gpu_memory="80Gi"), SLICE, WHOLE, USER) == set()
    assert rules(red(memory(), gpu_memory="79Gi"), SLICE, WHOLE, USER) == {"books"}


def test_an_ancestor_and_a_stranger_of_another_tree() -> None:
    """A tree that does not list a name does not show it, whoever else does."""
    org = measured.queue("org", memory(), usage={"gpu-memory": "20Gi"})
    child = measured.queue("red", parent="org", usage={"gpu-memory": "20Gi"})
    assert rules(org, child, SLICE, PART, USER) == set()
    stranger, own = measured.queue("blue", memory()), red(fans(), fans=2)
    noted = measured.noted(PART, fans="2")
    assert rules(stranger, own, SLICE, noted, USER) == set()


def test_counters_of_a_shared_device_are_charged_to_the_claim_that_had_it_first() -> None:
    mine = measured.noted(measured.claim("c", "red", USER, part="20Gi", at="2026-01-02"), fans="2")
    theirs = made.pod("q", "blue", "d", on="a")
    older = measured.claim("d", "blue", theirs, part="20Gi", at="2026-01-01")
    blue = measured.queue("blue", fans(), usage={"fans": 2})
    both = (SLICE, mine, measured.noted(older, fans="2"), USER, theirs)
    free = red(fans())
    free["metadata"]["finalizers"] = []
    assert rules(free, blue, *both) == set()
    assert rules(red(fans(), fans=2), blue, *both) == {"books"}


def test_what_was_noted_is_charged_once_the_slice_is_gone() -> None:
    assert rules(red(memory(), gpu_memory="80Gi"), EMPTY, WHOLE, USER) == set()
    assert "books" in rules(red(memory()), EMPTY, WHOLE, USER)


def test_of_what_could_not_be_noted_in_time_nothing_is_said() -> None:
    claim = measured.claim("c", "red", USER)
    assert rules(red(memory(), gpu_memory="80Gi"), EMPTY, claim, USER) == set()
    assert rules(red(memory()), EMPTY, claim, USER) == set()


def test_a_note_says_of_a_device_without_the_counter_that_it_costs_nothing() -> None:
    plain = {name: value for name, value in measured.device("gpu-0").items() if "Count" not in name}
    claim = measured.noted(measured.claim("c", "red", USER), fans="0")
    queue = red(fans())
    queue["metadata"]["finalizers"] = []
    assert rules(queue, measured.sliced(plain), claim, USER) == set()
    assert rules(queue, measured.sliced(plain), measured.noted(claim, fans="1"), USER) == {"note"}


def test_a_note_is_there_while_the_slice_is_and_says_the_truth() -> None:
    queue, claim = red(memory(), gpu_memory="80Gi"), measured.claim("c", "red", USER)
    wrong = measured.noted(claim, **{"gpu-memory": "8Gi"})
    assert rules(queue, SLICE, WHOLE, USER) == set()
    assert rules(queue, SLICE, claim, USER) == {"note"}
    assert rules(queue, SLICE, wrong, USER) == {"note"}
    assert rules(queue, EMPTY, wrong, USER) == {"note"}


WAITS, RUNS = made.pod("p", "red", "c"), USER


def bound(*bodies: Object) -> set[str]:
    row = made.changes(made.namespace(), *bodies, RUNS)
    return {finding.rule for finding in History().judge(row)}


@pytest.mark.parametrize(("limit", "found"), [("20Gi", set()), ("19Gi", {"over-limit"})])
def test_a_binding_past_a_limit_of_memory_is_found(limit: str, found: set[str]) -> None:
    queue = measured.queue("red", memory(limit=limit))
    assert bound(queue, SLICE, WAITS, measured.claim("c", "red", WAITS, part="20Gi")) == found


def test_a_device_costs_the_same_after_its_slice_is_gone() -> None:
    """It was noted of the other claim; what the new one has of it, its allocation says."""
    queue = measured.queue("red", memory(limit="99Gi"))
    other = measured.noted(measured.claim("d", "red", OTHER), **{"gpu-memory": "80Gi"})
    mine = measured.claim("c", "red", WAITS, of="gpu-1", part="20Gi")
    assert bound(queue, SLICE, other, OTHER, EMPTY, WAITS, mine) == {"over-limit"}
    assert bound(queue, SLICE, EMPTY, WAITS, mine) == set()


def test_non_preemptible_use_of_memory_past_the_quota_is_found() -> None:
    waits, runs = (made.pod("p", "red", "c", on=on, priority=100) for on in ("", "a"))
    mine = measured.claim("c", "red", waits, part="20Gi")
    for entries, found in (
        ([memory("20Gi")], set()),
        ([memory("10Gi")], {"non-preemptible-over-quota"}),
        ([fans()], {"non-preemptible-over-quota"}),
        ([], set()),
    ):
        lister = measured.queue("blue", memory(), fans())
        row = (lister, measured.queue("red", *entries), SLICE, waits, mine, runs)
        findings = History().judge(made.changes(made.namespace(), *row))
        assert {each.rule for each in findings} == found


def test_who_has_a_part_of_a_device_later_pays_no_counters() -> None:
    queue = measured.queue("red", fans(limit=2))
    other = measured.claim("d", "red", OTHER, part="20Gi", at="2026-01-01")
    mine = measured.claim("c", "red", WAITS, part="20Gi", at="2026-01-02")
    whole = measured.claim("c", "red", WAITS, of="gpu-1", at="2026-01-02")
    both = measured.published("gpu-0", "gpu-1")
    assert bound(queue, both, other, OTHER, WAITS, mine) == set()
    assert bound(queue, both, other, OTHER, WAITS, whole) == {"over-limit"}


@pytest.mark.parametrize(("slices", "found"), [(EMPTY, {"note"}), (SLICE, set())])
def test_a_note_that_is_lost_after_the_slice_went_is_found(slices: Object, found: set[str]) -> None:
    queue, lost = measured.queue("red", memory()), measured.claim("c", "red", USER)
    assert bound(queue, SLICE, WHOLE, slices, lost) == found
    free = measured.claim("c", "red")
    assert bound(queue, SLICE, WHOLE, slices, free) == set()


def test_a_vendors_claim_has_one_owner() -> None:
    claim = measured.claim("c", "", WAITS, part="20Gi")
    assert bound(measured.queue("red", memory()), SLICE, WAITS, claim) == {"one-owner"}
