"""How long a pod rests whose binding failed again and again."""

from __future__ import annotations

from datetime import timedelta

from scheduler_plugin.waiting.deferred.pod_backoffs import (
    FIRST_SECONDS,
    LONGEST_SECONDS,
    PodBackoffs,
)
from tests.left_overs import kept_in
from tests.scheduler_plugin.builders import NOW, pod_uid

POD = pod_uid("a")


def test_one_failure_may_be_a_conflict() -> None:
    pods = PodBackoffs()

    assert pods.failed(POD, 10.0) == 10.0
    assert pods.why_not(POD, 10.0, NOW) == ""


def test_each_further_failure_doubles_the_rest_up_to_its_longest() -> None:
    pods = PodBackoffs()
    rests = [pods.failed(POD, 0.0) for _ in range(200)]

    assert rests[1:4] == [FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS]
    assert rests[-1] == LONGEST_SECONDS
    assert rests == sorted(rests)


def test_a_resting_pod_is_told_why_in_the_same_words_each_time() -> None:
    pods = PodBackoffs()
    pods.failed(POD, 10.0)
    pods.failed(POD, 10.0)
    said = (
        "Its last 2 bindings failed: it is tried again at 2026-11-21T12:00:02Z, and others go"
        " first."
    )

    assert pods.why_not(POD, 10.0, NOW) == said
    assert pods.why_not(POD, 11.5, NOW + timedelta(seconds=1.4999)) == said
    assert pods.why_not(POD, 12.0, NOW) == ""
    assert pods.why_not(pod_uid("b"), 10.0, NOW) == ""


def test_success_makes_up_for_all_failures() -> None:
    pods = PodBackoffs()
    for _ in range(5):
        pods.failed(POD, 10.0)

    pods.forget(POD)

    assert pods.failed(POD, 10.0) == 10.0


def test_failures_of_long_ago_are_forgotten() -> None:
    pods = PodBackoffs()
    for number in range(50):
        pods.failed(pod_uid(f"gone-{number}"), 10.0)
    pods.failed(POD, 11.0)

    assert pods.failed(POD, 12.0) == 12.0 + FIRST_SECONDS
    assert pods.failed(POD, 12.0 + 3 * LONGEST_SECONDS) == 12.0 + 3 * LONGEST_SECONDS
    assert kept_in(pods) == {"._failures": 1}
