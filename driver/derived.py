"""What follows from a value alone: worked out once, kept with the value, and gone with it.

Whenever one device of a thousand changes, all are decided about anew. The others are the very
objects that they were before, so what followed from them then follows from them now. For whoever
looks from outside `derived(value, function, ...)` is `function(value, ...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, TypeVarTuple


@dataclass(frozen=True, slots=True)
class Deriving:
    """A value that results are kept with; they are no part of what it equals."""

    results: dict[object, tuple[object, Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )


V = TypeVar("V", bound=Deriving)
Ts = TypeVarTuple("Ts")
R = TypeVar("R")


def derived(value: V, function: Callable[[V, *Ts], R], *others: *Ts) -> R:
    """What the function returns for this value and others; nobody may change it.

    Args:
        value: Neither it nor anything in it changes.
        function: Pure, and always the same object, so no lambda. Its last result is kept.
        others: Equal ones give the same result.
    """
    known = value.results.get(function)
    if known is None or known[0] != others:
        known = value.results[function] = (others, function(value, *others))
    result: R = known[1]
    return result
