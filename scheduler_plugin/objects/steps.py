"""Decisions that pause: generators that return what was decided, so that others go on meanwhile."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]

STRIDE = 64
"""After how many small things there is a pause."""


def at_once(steps: Steps[T]) -> T:
    """For who does not pause."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found: T = ended.value
            return found
