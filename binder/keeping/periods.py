"""How often a controller looks at its keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """All that one controller waits for, in seconds.

    Attributes:
        gather: How long changes of one key are gathered: a binding changes a claim several times.
        retry: How soon a key is looked at again that may not be written now.
        resync: How often all keys are looked at, whatever was missed.
    """

    gather: float
    retry: float
    resync: float = 60.0
