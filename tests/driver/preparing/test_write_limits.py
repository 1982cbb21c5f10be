"""How often one object is written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driver.preparing.write_limits import MOST_WRITES, with_write, write_wait

WINDOW = 60.0


def test_the_first_writes_are_made_at_once_and_the_next_when_the_first_is_long_ago() -> None:
    times: tuple[float, ...] = ()
    for second in range(MOST_WRITES):
        assert write_wait(times, float(second), WINDOW) == 0
        times = with_write(times, float(second))

    assert write_wait(times, 10.0, WINDOW) == WINDOW - 10
    assert write_wait(times, WINDOW, WINDOW) == 0


@given(st.lists(st.floats(0, 20), max_size=60))
def test_no_window_has_more_writes(pauses: list[float]) -> None:
    now = 0.0
    times: tuple[float, ...] = ()
    written: list[float] = []
    for pause in pauses:
        now += pause
        if not write_wait(times, now, WINDOW):
            times = with_write(times, now)
            written.append(now)

    for start in written:
        assert sum(start <= at < start + WINDOW for at in written) <= MOST_WRITES
