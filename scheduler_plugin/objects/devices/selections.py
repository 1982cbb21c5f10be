"""Which devices CEL expressions select: for expressions, and a look of devices, the last result.

Devices that look equal to CEL share a result. A device may be selected while there is no result:
before the evaluation, where it fails, and where it takes too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

MOST_ANSWERS = 1_000_000
"""The largest number of results, of about 100 bytes each."""

CHARACTERS = 100
"""The number of characters of expressions that count as one result."""

Selectors: TypeAlias = tuple[str | None, ...]
"""CEL expressions; None stands for a selector of another kind."""

Expressions: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class Known:
    """The results of some expressions.

    Attributes:
        answers: By digest of a look; None where the evaluation fails.
    """

    is_too_slow: bool = False
    answers: dict[int, bool | None] = field(default_factory=dict)

    def is_open(self, look: int) -> bool:
        """Whether a result is to be awaited."""
        return not self.is_too_slow and look not in self.answers


_NOTHING = Known()


class Selections:
    """The results. When there are too many, the least recently used expressions are dropped."""

    def __init__(self, most: int = MOST_ANSWERS) -> None:
        self._most = most
        self._room = 0
        self.changes = 0
        """The number of changes; equal numbers mean equal results."""
        # The most recently used expressions are last.
        self._known: dict[Selectors, Known] = {}

    def __len__(self) -> int:
        return sum(len(known.answers) for known in self._known.values())

    def of(self, selectors: Selectors) -> Known:
        """The results of selectors, to be read at once."""
        return self._known.get(selectors, _NOTHING)

    def touch(self, expressions: Expressions) -> Known:
        """The results of expressions, which are used."""
        known = self._known.pop(expressions, None)
        if known is None:
            return _NOTHING
        self._known[expressions] = known
        return known

    def put(self, expressions: Expressions, answers: Mapping[int, bool | None]) -> None:
        """Enter results by digest of a look."""
        known = self._entered(expressions)
        before = len(known.answers)
        known.answers.update(answers)
        self._room += len(known.answers) - before
        self._drop()

    def put_too_slow(self, expressions: Expressions) -> None:
        """The evaluation of these takes too long: no result is to be awaited."""
        self._entered(expressions).is_too_slow = True
        self._drop()

    def _entered(self, expressions: Expressions) -> Known:
        self.changes += 1
        if expressions not in self._known:
            self._known[expressions] = Known()
            self._room += _room_of(expressions)
        return self.touch(expressions)

    def _drop(self) -> None:
        """Drop the least recently used expressions until the size is allowed."""
        while self._room > self._most:
            expressions = next(iter(self._known))
            known = self._known.pop(expressions)
            self._room -= _room_of(expressions) + len(known.answers)


def evaluable(groups: Iterable[Selectors]) -> Iterable[Expressions]:
    """The groups of selectors that can be evaluated: all of a group are CEL."""
    for selectors in groups:
        expressions = tuple(text for text in selectors if text is not None)
        if expressions and len(expressions) == len(selectors):
            yield expressions


def digest_of_look(look: str) -> int:
    """Equal for devices that look equal to CEL, in this process only.

    Python seeds the hash in each process, so no user can construct a collision.
    """
    return hash(look)


def _room_of(selectors: Selectors) -> int:
    return 1 + sum(len(text or "") for text in selectors) // CHARACTERS
