"""How long a pod rests whose binding failed again and again."""

from __future__ import annotations

from datetime import timedelta

from scheduler_plugin.backoffs import FIRST_REST, LONGEST_REST, Backoffs
from scheduler_plugin.names import PodUid
from tests.scheduler_plugin.builders import NOW, pod_uid

POD = pod_uid("a")


def test_one_failure_may_be_a_conflict() -> None:
    backoffs = Backoffs()

    assert backoffs.failed(POD, NOW) == NOW
    assert backoffs.why_not(POD, NOW) == ""


def test_each_further_failure_doubles_the_rest_up_to_its_longest() -> None:
    backoffs = Backoffs()
    rests = [backoffs.failed(POD, NOW) - NOW for _ in range(200)]

    assert rests[1:4] == [FIRST_REST, 2 * FIRST_REST, 4 * FIRST_REST]
    assert rests[-1] == LONGEST_REST
    assert rests == sorted(rests)


def test_a_resting_pod_is_told_why() -> None:
    backoffs = Backoffs()
    backoffs.failed(POD, NOW)
    backoffs.failed(POD, NOW)

    assert backoffs.why_not(POD, NOW) == (
        "Its last 2 bindings failed: it is tried again at 2026-11-21T12:00:02Z, and others go"
        " first."
    )
    assert backoffs.why_not(POD, NOW + FIRST_REST) == ""
    assert backoffs.why_not(pod_uid("b"), NOW) == ""


def test_nobody_rests_for_longer_where_the_clock_is_set_back() -> None:
    backoffs = Backoffs()
    for _ in range(2):
        backoffs.failed(POD, NOW)

    assert backoffs.why_not(POD, NOW - timedelta(hours=1)) == ""


def test_success_makes_up_for_all_failures() -> None:
    backoffs = Backoffs()
    for _ in range(5):
        backoffs.failed(POD, NOW)

    backoffs.forget(POD)

    assert backoffs.failed(POD, NOW) == NOW


def test_pods_that_are_gone_are_forgotten() -> None:
    backoffs = Backoffs()
    for number in range(50):
        backoffs.failed(PodUid(f"gone-{number}"), NOW)

    backoffs.failed(POD, NOW + timedelta(hours=1))

    assert len(backoffs) == 1
