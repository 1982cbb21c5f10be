"""The last hours: a ring for each figure that was not zero all the time, up to a number of them."""

from __future__ import annotations

from scheduler_plugin.dashboard.history import History, Past

CAM = ("vision", "onvif")


def test_samples_are_told_with_their_times() -> None:
    history = History()
    for moment, usage, requested in ((10.0, 1, 2), (30.0, 2, 2)):
        history.begin(moment)
        history.put(CAM, usage, requested)

    assert history.of(CAM) == Past((10.0, 30.0), (1, 2), (2, 2))


def test_only_the_last_ones_are_kept() -> None:
    history = History(kept=3)
    for number in range(5):
        history.begin(float(number))
        history.put(CAM, number, 9)

    assert history.of(CAM) == Past((2.0, 3.0, 4.0), (2, 3, 4), (9, 9, 9))


def test_what_was_not_there_is_a_gap_and_not_a_zero() -> None:
    history = History(kept=4)
    for number in range(7):
        history.begin(float(number))
        if number in (0, 1, 2, 6):
            history.put(CAM, number + 1, 0)

    assert history.of(CAM).usage == (None, None, None, 7)


def test_what_is_gone_for_as_long_as_is_kept_is_forgotten() -> None:
    history = History(kept=2)
    history.begin(0.0)
    history.put(CAM, 1, 1)
    history.begin(1.0)
    after_one = len(history)
    history.begin(2.0)

    assert (after_one, len(history)) == (1, 0)
    assert history.of(CAM) == Past()


def test_memory_is_bounded() -> None:
    history = History(most_series=2)
    history.begin(0.0)
    for number in range(5):
        history.put((f"queue-{number}", "onvif"), 1, 1)
    history.put(("idle", "onvif"), 0, 0)

    assert len(history) == 2


def test_a_figure_that_came_to_zero_goes_on() -> None:
    history = History()
    history.begin(0.0)
    history.put(CAM, 1, 1)
    history.begin(1.0)
    history.put(CAM, 0, 2**40)

    assert history.of(CAM).usage == (1, 0)
    assert history.of(CAM).requested == (1, 2**31 - 1)
