"""Findings of the rules about one object: all its problems, and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from driver.api import Problem
from kube.words import some_of


@dataclass(frozen=True, slots=True)
class Findings:
    """An object with a problem is refused; warnings reach the user in any case."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING_FOUND = Findings()


def refused(problems: Iterable[Problem]) -> Findings:
    return Findings(problems=tuple(problems))


listed = partial(some_of, most=5)
