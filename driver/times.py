"""Durations and times as Kubernetes writes them: `5m`, `1h30m`, `2026-01-02T03:04:05Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

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
    """A duration in the notation of Go's `time.ParseDuration`, or None where it is none.

    Negative durations, nanoseconds and more than a year are not taken: no setting means them.
    """
    if text == "0":
        return timedelta()
    if not re.fullmatch(rf"(?:{_PART})+", text):
        return None
    seconds = sum(Decimal(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    return timedelta(seconds=float(seconds)) if seconds <= _LONGEST else None


def timestamp(moment: datetime) -> str:
    """A time in RFC 3339, to the second, as objects of the API have them."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
