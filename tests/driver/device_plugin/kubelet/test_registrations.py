"""When a plugin is registered with the kubelet again."""

from __future__ import annotations

import pytest

from driver.device_plugin.kubelet.registrations import Pace, Registration

PACE = Pace(again_seconds=0.5, patience_seconds=5, lasting_seconds=5)
FIRST, SECOND = (1, 10, 100), (1, 10, 200)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registration(clock: Clock) -> Registration:
    """Of a plugin that the first run of the kubelet has accepted."""
    one = Registration(PACE, clock)
    assert one.is_due(FIRST)
    one.begin(FIRST)
    one.accept()
    return one


def test_kubelet_has_time_to_watch_and_is_asked_again_if_it_does_not(
    registration: Registration, clock: Clock
) -> None:
    clock.now = 4.9
    assert not registration.is_due(FIRST)
    clock.now = 5.0
    assert registration.is_due(FIRST)


def test_plugin_that_is_watched_is_due_for_another_run_only(
    registration: Registration, clock: Clock
) -> None:
    registration.open_stream()
    clock.now = 1000.0

    assert not registration.is_due(FIRST)
    assert registration.is_due(SECOND)
    assert registration.is_due(None)


def test_kubelet_that_watches_needs_no_answer(registration: Registration, clock: Clock) -> None:
    registration.open_stream()
    registration.fail()
    clock.now = 1000.0

    assert not registration.is_due(FIRST)


def test_after_a_stream_the_kubelet_gets_time_to_forget(
    registration: Registration, clock: Clock
) -> None:
    end = registration.open_stream()
    clock.now = 100.0
    end()

    assert not registration.is_due(FIRST)
    clock.now = 100.5
    assert registration.is_due(FIRST)


def test_short_streams_are_failures_until_one_lasts(
    registration: Registration, clock: Clock
) -> None:
    for failures in (1, 2, 3):
        end = registration.open_stream()
        end()
        assert registration.failures == failures
        assert not registration.is_due(FIRST)
    end = registration.open_stream()
    clock.now += 5
    end()

    assert registration.failures == 0


def test_failures_wait_longer_up_to_a_limit_and_another_run_is_a_new_start(
    registration: Registration,
) -> None:
    delays = [registration.fail() for _ in range(40)]

    assert all(0.5 <= delay <= 30.5 for delay in delays)
    assert max(delays[20:]) > 1.5
    assert not registration.is_due(FIRST)
    assert registration.is_due(SECOND)
    registration.begin(SECOND)
    assert registration.failures == 0


def test_streams_of_an_earlier_run_do_not_count(registration: Registration, clock: Clock) -> None:
    end_first = registration.open_stream()
    registration.begin(SECOND)
    registration.accept()
    end_second = registration.open_stream()
    clock.now = 100.0
    end_first()
    clock.now = 200.0
    assert not registration.is_due(SECOND)

    end_second()
    clock.now = 200.5
    assert registration.is_due(SECOND)


def test_one_of_two_streams_keeps_it_registered(registration: Registration, clock: Clock) -> None:
    ends = registration.open_stream(), registration.open_stream()
    clock.now = 1.0
    ends[0]()
    assert registration.failures == 0
    clock.now = 200.0
    assert not registration.is_due(FIRST)
    ends[1]()
    clock.now = 201.0
    assert registration.is_due(FIRST)
