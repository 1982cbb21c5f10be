"""Conditions are waited for, and asked no more often than the cluster bears."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from local_cluster import health
from local_cluster.health import wait_until


@dataclass
class FakeTime:
    """Goes on by what is slept alone."""

    now: float = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("took", "asked"),
    [
        pytest.param(0.0, 101, id="ten times a second"),
        pytest.param(0.5, 11, id="half of the time"),
        pytest.param(8.0, 2, id="soon, however long it took"),
    ],
)
def test_what_takes_long_is_asked_less_often(
    monkeypatch: pytest.MonkeyPatch, took: float, asked: int
) -> None:
    time = FakeTime()
    monkeypatch.setattr(health, "time", time)
    looks: list[float] = []

    def look() -> bool:
        looks.append(time.now)
        time.sleep(took)
        return False

    assert not wait_until(look, seconds=9.95)
    assert len(looks) == asked
