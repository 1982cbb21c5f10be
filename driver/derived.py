"""Derived results: computed once from an immutable value, and cached with the value.

When one device of a thousand changes, all devices are decided again. The other 999 are the same
objects as before, so their cached results are still valid. `derived(value, function, ...)` returns
the same as `function(value, ...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, TypeVarTuple


@dataclass(frozen=True, slots=True)
class Deriving:
    """A value with cached results, which comparisons ignore."""

    results: dict[object, tuple[object, Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )


V = TypeVar("V", bound=Deriving)
Ts = TypeVarTuple("Ts")
R = TypeVar("R")


def derived(value: V, function: Callable[[V, *Ts], R], *others: *Ts) -> R:
    """The result of the function for these arguments. The caller must not change it.

    Args:
        value: An immutable value.
        function: A pure function that is always the same object, so no lambda. Its last result is
            cached.
        others: Further arguments; the cache compares them by equality.
    """
    known = value.results.get(function)
    if known is None or known[0] != others:
        known = value.results[function] = (others, function(value, *others))
    result: R = known[1]
    return result
