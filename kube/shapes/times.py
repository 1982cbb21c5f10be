"""Durations and times as Kubernetes writes them: `5m`, `1h30m`, `2026-01-02T03:04:05Z`.

Times are RFC 3339. `time_of` is for texts that the API server has validated, and raises.
`read_time` is for texts of any source, and returns None.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

NO_TIME = datetime.min.replace(tzinfo=UTC)
"""Earlier than all times, for an object without a time."""

_SECONDS = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
    "us": Decimal("0.000001"),
}
_PART = r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|us|s)"
_LONGEST = Decimal(timedelta(days=366).total_seconds())


def parse_duration(text: str) -> timedelta | None:
    """A duration in the notation of Go's `time.ParseDuration`; None for other texts.

    Negative durations, nanoseconds and more than a year are refused: no setting needs them.
    """
    if text == "0":
        return timedelta()
    if not re.fullmatch(rf"(?:{_PART})+", text):
        return None
    seconds = sum(Decimal(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    return timedelta(seconds=float(seconds)) if seconds <= _LONGEST else None


def time_of(text: str) -> datetime:
    """The time of a text; raises ValueError if it is not a time with a zone."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} is a time without a time zone")
    return found


def read_time(text: object) -> datetime | None:
    """The time of a text; None if it is not a time with a zone."""
    try:
        return time_of(text) if isinstance(text, str) else None
    except ValueError:
        return None


def timestamp(moment: datetime) -> str:
    """A Time of the API: UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def milli_time(moment: datetime) -> str:
    """The same to the millisecond."""
    return f"{moment.astimezone(UTC).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def micro_time(moment: datetime) -> str:
    """A MicroTime of the API: UTC, with exactly six digits after the point."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
