"""Dates of HTTP, RFC 9110."""

from __future__ import annotations

from datetime import datetime


def moment_of(text: str) -> datetime:
    """The time in a header such as `Date`.

    Raises:
        ValueError: The text is not a date.
        TypeError: The value is not a text.
        OverflowError: The date is out of range.
    """
    # Imported late: few calls read a date, and this loads most of the package for mail.
    from email.utils import parsedate_to_datetime

    return parsedate_to_datetime(text)
