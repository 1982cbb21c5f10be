"""How long a Queue's status rests after a write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.names import QueueName
from scheduler_plugin.status_rests import LONGEST, SHORTEST, StatusRests

VISION, ROBOTS = QueueName("vision"), QueueName("robots")


def test_queue_that_changes_all_the_time_is_written_ever_less_often() -> None:
    rests, now, found = StatusRests(), 0.0, []

    for _ in range(5):
        found.append(rests.begin(VISION, now))
        now += found[-1]

    assert found == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_queue_that_was_quiet_rests_as_short_as_at_first() -> None:
    rests = StatusRests()
    for now in (0.0, 1.0, 3.0):
        rests.begin(VISION, now)

    assert rests.begin(VISION, 11.0) == SHORTEST


def test_queues_rest_apart_from_each_other() -> None:
    rests = StatusRests()
    rests.begin(VISION, 0.0)

    assert rests.begin(ROBOTS, 0.5) == SHORTEST


def test_queue_of_the_same_name_that_is_made_anew_rests_as_short_as_at_first() -> None:
    rests = StatusRests()
    rests.begin(VISION, 0.0)
    rests.forget(VISION)

    assert rests.begin(VISION, 1.0) == SHORTEST


@given(st.lists(st.floats(0, 20)))
def test_no_rest_is_longer_than_the_longest(pauses: list[float]) -> None:
    rests, now = StatusRests(), 0.0
    for pause in pauses:
        rest = rests.begin(VISION, now)
        assert SHORTEST <= rest <= LONGEST
        now += rest + pause
