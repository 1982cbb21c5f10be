"""What the rules find out about one object: all that is wrong with it, and what is merely odd."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from driver.api import Problem
from kube.words import some_of


@dataclass(frozen=True, slots=True)
class Findings:
    """An object is refused if there is a problem; warnings reach the user either way."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING_FOUND = Findings()


def refused(problems: Iterable[Problem]) -> Findings:
    return Findings(problems=tuple(problems))


listed = partial(some_of, most=5)
