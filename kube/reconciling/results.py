"""What came of working on a key once: what controller-runtime calls a Result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """It is as it should be; looked at again when something changes."""


@dataclass(frozen=True, slots=True)
class After:
    """It is looked at again after this time, or sooner when something changes."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be brought about: tried again, later and later."""

    error: Exception


Result = Done | After | Failed
