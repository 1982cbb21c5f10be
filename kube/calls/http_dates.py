"""Dates of HTTP, RFC 9110."""

from __future__ import annotations

from datetime import datetime


def moment_of(text: str) -> datetime:
    """The moment that a header such as `Date` names.

    Raises:
        ValueError: If it is none.
        TypeError: If it is no text.
        OverflowError: If it is beyond the calendar.
    """
    # Few calls read a date, and this brings most of the package for mail.
    from email.utils import parsedate_to_datetime

    return parsedate_to_datetime(text)
