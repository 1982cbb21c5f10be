"""The wall clock, for the times that objects show to people; never for deciding anything."""

from datetime import UTC, datetime


def wall_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  The shell is where time comes from.
