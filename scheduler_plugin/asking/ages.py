"""Ages as kubectl writes them: 5m, 3h12m, 2d."""

from __future__ import annotations

from datetime import datetime, timedelta

from kube.shapes.times import read_time

UNKNOWN = "<unknown>"
"""What kubectl writes for a time that is not set."""

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_CLOCK_SKEW = timedelta(seconds=2)
"""How far two clocks may differ before a negative age counts as invalid."""

_STEPS = (
    # Below this many seconds: the larger unit, and the smaller unit that is written beside it.
    (10 * _MINUTE, _MINUTE, 1),
    (3 * _HOUR, _MINUTE, None),
    (8 * _HOUR, _HOUR, _MINUTE),
    (2 * _DAY, _HOUR, None),
    (8 * _DAY, _DAY, _HOUR),
    (2 * _YEAR, _DAY, None),
    (8 * _YEAR, _YEAR, _DAY),
)
_LETTERS = {1: "s", _MINUTE: "m", _HOUR: "h", _DAY: "d", _YEAR: "y"}


def age(since: str, now: datetime) -> str:
    """The time from `since` to `now`; a text that is not a time is returned unchanged."""
    if not since:
        return UNKNOWN
    found = read_time(since)
    return since if found is None else duration(now - found)


def ago(since: str, now: datetime) -> str:
    """`5m ago`; a text that is not a time is returned unchanged."""
    said = age(since, now)
    return f"{said} ago" if read_time(since) is not None else said


def duration(passed: timedelta) -> str:
    """The text of a duration, as `k8s.io/apimachinery/pkg/util/duration.HumanDuration` rounds."""
    if passed < -_CLOCK_SKEW:
        return "<invalid>"
    seconds = max(0, int(passed.total_seconds()))
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for below, large, small in _STEPS:
        if seconds < below:
            return _age_text(seconds, large, small)
    return _age_text(seconds, _YEAR, None)


def _age_text(seconds: int, large: int, small: int | None) -> str:
    count, rest = divmod(seconds, large)
    more = rest // small if small else 0
    return f"{count}{_LETTERS[large]}" + (f"{more}{_LETTERS[small]}" if small and more else "")
