"""How often a controller looks at its keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """The intervals of one controller, in seconds.

    Attributes:
        gather: How long changes of one key are collected: a binding changes a claim several times.
        retry: When a key that may not be written now is reconciled again.
        resync: How often all keys are reconciled without a change.
    """

    gather: float
    retry: float
    resync: float = 60.0
