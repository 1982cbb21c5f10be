"""The wall clock, for the times that objects show to people; no decision depends on it."""

from datetime import UTC, datetime


def wall_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  The shell is where time comes from.
