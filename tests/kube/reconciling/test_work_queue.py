"""No key is lost, and none is in work twice, in whatever order things happen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kube.backoff import Backoff
from kube.reconciling.work_queue import WorkQueue

BACKOFF = Backoff(first_seconds=1.0, cap_seconds=8.0)
keys = st.sampled_from("abcd")
seconds = st.integers(0, 5).map(float)


def a_queue() -> WorkQueue[str]:
    return WorkQueue(BACKOFF, lambda: 1.0)


def taken(queue: WorkQueue[str], now: float = 0.0) -> list[str]:
    """All that are ready, each done at once."""

    def all_of() -> Iterator[str]:
        while (key := queue.get(now)) is not None:
            queue.done(key)
            yield key

    return list(all_of())


def test_a_key_that_is_added_twice_is_worked_on_once_in_the_order_of_the_first() -> None:
    queue = a_queue()
    for key in "abab":
        queue.add(key)

    assert (len(queue), taken(queue), len(queue)) == (2, ["a", "b"], 0)


def test_what_is_added_while_it_is_worked_on_comes_again_and_not_at_the_same_time() -> None:
    queue = a_queue()
    queue.add("a")
    assert queue.get(0.0) == "a"

    queue.add("a")
    queue.add("a")

    assert queue.get(0.0) is None
    assert len(queue) == 1
    queue.done("a")
    assert taken(queue) == ["a"]


@pytest.mark.parametrize("patient", [False, True])
def test_a_key_that_failed_waits_though_it_is_added_where_the_queue_is_patient(
    patient: bool,
) -> None:
    queue: WorkQueue[str] = WorkQueue(replace(BACKOFF, patient=patient), lambda: 1.0)
    queue.add("a")
    assert queue.get(0.0) == "a"
    queue.add("a")
    assert queue.add_rate_limited("a", 0.0) == 1.0
    queue.done("a")
    queue.add_after("a", 0.5)
    queue.add("b")

    assert taken(queue, 0.5) == (["b"] if patient else ["a", "b"])
    assert "a" in taken(queue, 1.0) or not patient
    queue.forget("a")
    queue.add_after("a", 9.0)
    queue.add("a")
    assert taken(queue, 2.0) == ["a"]


@pytest.mark.parametrize("patient", [False, True])
def test_a_key_that_is_added_for_later_during_its_failing_call_waits_in_a_patient_queue(
    patient: bool,
) -> None:
    queue: WorkQueue[str] = WorkQueue(replace(BACKOFF, patient=patient), lambda: 1.0)
    queue.add("a")
    queue.get(0.0)
    queue.add_after("a", 0.1)
    queue.add_rate_limited("a", 0.0)
    queue.done("a")

    assert queue.next_moment() == (1.0 if patient else 0.1)


def test_thousands_of_keys_that_fail_together_are_not_retried_together() -> None:
    queue: WorkQueue[int] = WorkQueue(Backoff(0.1, 0.1), lambda: 0.0)

    waits = [queue.add_rate_limited(key, 50.0) for key in range(1_000)]

    assert waits[:99] == [0.0] * 99
    assert waits[199] == pytest.approx(10.0)
    assert waits[-1] == pytest.approx(90.0)
    assert queue.add_rate_limited(0, 1_000.0) == 0.0


def test_of_several_moments_the_earliest_counts() -> None:
    queue = a_queue()
    queue.add_after("a", 5.0)
    queue.add_after("a", 2.0)
    queue.add_after("a", 9.0)
    queue.add_after("b", 3.0)

    assert queue.next_moment() == 2.0
    assert taken(queue, 1.9) == []
    assert taken(queue, 3.0) == ["a", "b"]
    assert (queue.next_moment(), taken(queue, 99.0)) == (None, [])


def test_failures_in_a_row_wait_longer_up_to_the_cap_until_they_are_forgotten() -> None:
    queue = a_queue()

    waits = [queue.add_rate_limited("a", 0.0) for _ in range(6)]

    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert queue.requeues("a") == 6
    queue.forget("a")
    assert queue.add_rate_limited("a", 0.0) == 1.0


def test_who_is_told_when_to_come_again_does_not_come_sooner() -> None:
    queue = a_queue()

    assert queue.add_rate_limited("a", 10.0, at_least=5.0) == 5.0
    assert queue.next_moment() == 15.0


def test_moments_that_count_no_more_are_not_kept() -> None:
    queue = a_queue()
    for moment in range(10_000, 0, -1):
        queue.add_after("a", float(moment))

    assert len(queue._waiting._heap) < 40  # noqa: SLF001  What a long run would fill memory with.


def test_only_who_is_in_work_is_done() -> None:
    with pytest.raises(KeyError):
        a_queue().done("a")


class Histories(RuleBasedStateMachine):
    """Beside the queue a plain model: what has to be worked on still, and from when on."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = a_queue()
        self.now = 0.0
        self.due: dict[str, float] = {}
        self.in_work: set[str] = set()

    @rule(key=keys)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.due[key] = self.now

    @rule(key=keys, seconds=seconds)
    def add_after(self, key: str, seconds: float) -> None:
        moment = self.now + seconds
        self.queue.add_after(key, moment)
        self.due[key] = min(moment, self.due.get(key, moment))

    @rule(key=keys)
    def fail(self, key: str) -> None:
        moment = self.now + self.queue.add_rate_limited(key, self.now)
        self.due[key] = min(moment, self.due.get(key, moment))

    @rule(seconds=seconds)
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def get(self) -> None:
        key = self.queue.get(self.now)
        may = {k for k, moment in self.due.items() if moment <= self.now} - self.in_work
        if key is None:
            assert not may, "somebody is ready, and nobody is told"
            return
        assert key not in self.in_work, "two work on it"
        self.in_work.add(key)
        # One that waits for a moment, too, may come once more than it has to.
        self.due.pop(key, None)
        moment = self.queue._waiting.at(key)  # noqa: SLF001  The model is told, not asked.
        if moment is not None:
            self.due[key] = moment

    @precondition(lambda self: self.in_work)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.in_work)))
        self.in_work.remove(key)
        self.queue.done(key)

    @invariant()
    def whoever_waits_has_a_moment(self) -> None:
        later = [m for k, m in self.due.items() if m > self.now]
        moment = self.queue.next_moment()
        assert moment is None or not later or moment <= min(later)

    def teardown(self) -> None:
        for key in sorted(self.in_work):
            self.queue.done(key)
        left = set(taken(self.queue, float("inf")))
        assert set(self.due) <= left, "what was added is worked on"
        assert len(self.queue) == 0


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
