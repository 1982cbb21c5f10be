"""Durations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.times import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("5m", 300), ("1h30m", 5400), ("250ms", 0.25), ("1.5s", 1.5), ("2h", 7200)],
)
def test_notation_of_go_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "m", "-5m", "5 m", "5d", "1e3s", "9" * 30 + "h", "9999h" * 9]
)
def test_anything_else_is_none(text: str) -> None:
    assert parse_duration(text) is None


@given(st.text(max_size=30))
def test_no_text_raises(text: str) -> None:
    parsed = parse_duration(text)

    assert parsed is None or parsed >= timedelta()
