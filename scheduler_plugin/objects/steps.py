"""Cooperative computations: generators that yield so that other tasks run, and return a result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]

STRIDE = 64
"""After how many small items a computation yields."""


def run_to_end(steps: Steps[T]) -> T:
    """Run a computation to its end without pauses, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found: T = ended.value
            return found
