"""The mark on an Instance whose device is away: since when, so that any process can go on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from driver.api import OFFLINE_SINCE


def offline_mark(since: datetime) -> dict[str, str]:
    """The annotation."""
    return {OFFLINE_SINCE: since.isoformat(timespec="seconds")}


def offline_since(metadata: Mapping[str, Any]) -> datetime | None:
    """What the mark says; one that is no time is read as none."""
    text = (metadata.get("annotations") or {}).get(OFFLINE_SINCE)
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else None
