"""How often a status is written that changes all the time."""

from __future__ import annotations

from binder.queues.status_rate_limits import StatusRateLimits
from kube.backoff import Backoff
from scheduler_plugin.objects.names import QueueName

VISION = QueueName("vision")


def a_pace() -> StatusRateLimits:
    return StatusRateLimits(Backoff(first_seconds=1.0, cap_seconds=5.0))


def test_queue_that_changes_all_the_time_is_written_ever_less_often() -> None:
    rate_limits, now, found = a_pace(), 0.0, []

    for _ in range(5):
        rate_limits.wrote(VISION, now)
        found.append(rate_limits.seconds(VISION, now))
        now += found[-1]

    assert found == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert rate_limits.seconds(VISION, now) == 0.0


def test_row_ends_where_it_is_quiet_for_as_long_as_the_rest_was() -> None:
    rate_limits = a_pace()
    rate_limits.wrote(VISION, 0.0)
    rate_limits.wrote(VISION, 1.9)
    assert rate_limits.seconds(VISION, 1.9) == 2.0

    rate_limits.wrote(VISION, 5.9)

    assert rate_limits.seconds(VISION, 5.9) == 1.0


def test_queue_that_is_forgotten_may_be_written_at_once() -> None:
    rate_limits = a_pace()
    rate_limits.wrote(VISION, 0.0)

    rate_limits.forget(VISION)

    assert rate_limits.seconds(VISION, 0.0) == 0.0
    assert rate_limits.seconds(QueueName("another"), 0.0) == 0.0
