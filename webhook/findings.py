"""What the rules find out about one object: all that is wrong with it, and what is merely odd."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from driver.api import Problem


@dataclass(frozen=True, slots=True)
class Findings:
    """An object is refused if there is a problem; warnings reach the user either way."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING_FOUND = Findings()


def refused(problems: Iterable[Problem]) -> Findings:
    return Findings(problems=tuple(problems))


def listed(names: Iterable[str], most: int = 5) -> str:
    """Names for a sentence; of many only the first."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
