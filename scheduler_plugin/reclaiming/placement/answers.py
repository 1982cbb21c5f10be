"""Cache of CEL results: for expressions, and a device as CEL sees it, the last result.

Devices that look equal to CEL share a result, and so do requests with the same expressions. The
expressions of the DeviceClass and of the request are evaluated apart, so that one user's request
does not make another's slower. A device may match while there is no result: before evaluation,
where evaluation fails, and where it takes too long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from scheduler_plugin.reclaiming.placement.offers import DeviceCriteria, Offer

MOST_ANSWERS = 1_000_000
"""The largest number of results, of about 100 bytes each."""

CHARACTERS = 100
"""The number of characters of expressions that count as one result."""

Selectors: TypeAlias = tuple[str | None, ...]
"""CEL expressions; None stands for a selector of another kind."""

Expressions: TypeAlias = tuple[str, ...]


class Unanswered(NamedTuple):
    """Expressions to evaluate, with one device for each group that looks equal to CEL."""

    expressions: Expressions
    offers: tuple[Offer, ...]


@dataclass(slots=True)
class _Known:
    """The results of some expressions.

    Attributes:
        answers: By digest of a device; None where the evaluation fails.
    """

    is_too_slow: bool = False
    answers: dict[int, bool | None] = field(default_factory=dict)


_NOTHING = _Known()


class Answers:
    """The results. When there are too many, the least recently used expressions are dropped."""

    def __init__(self, most: int = MOST_ANSWERS) -> None:
        self._most = most
        self._room = 0
        # The most recently used expressions are last.
        self._known: dict[Selectors, _Known] = {}

    def __len__(self) -> int:
        return sum(len(known.answers) for known in self._known.values())

    def accepts(self, criteria: DeviceCriteria, offer: Offer) -> bool:
        """Whether a device may match a request, free or not.

        False where its pool is incomplete, or the request does not tolerate a taint.
        """
        if not criteria.may_have(offer):
            return False
        return not any(self._refuses(each, offer) for each in criteria.selectors)

    def answer(self, selectors: Selectors, offer: Offer) -> bool | None:
        """The result of selectors for a device; None where there is none."""
        return self._known_of(selectors).answers.get(offer.digest)

    def known(self, criteria: DeviceCriteria) -> int:
        """The version of the results for a request: another number after each new result."""
        found = [self._known_of(selectors) for selectors in criteria.selectors]
        return sum(2 * len(known.answers) + known.is_too_slow for known in found)

    def is_too_slow(self, selectors: Selectors) -> bool:
        """Whether the evaluation of these selectors is known to take too long."""
        return self._known_of(selectors).is_too_slow

    def missing(
        self,
        criteria: DeviceCriteria,
        offers: Iterable[Offer],
        skipped: Collection[Expressions] = (),
    ) -> Unanswered | None:
        """What to evaluate next for a request; None for nothing.

        The expressions of the request concern only devices that the class accepts, so they come
        after those of the class.

        Args:
            criteria: The request.
            offers: The devices to look at.
            skipped: Expressions that are not to be evaluated for this request.
        """
        left = [offer for offer in offers if criteria.may_have(offer)]
        for expressions in evaluable(criteria):
            known = self._touch(expressions)
            if not known.is_too_slow and expressions not in skipped:
                found = {o.digest: o for o in left if o.digest not in known.answers}
                if found:
                    return Unanswered(expressions, tuple(found.values()))
            left = [offer for offer in left if not self._refuses(expressions, offer)]
        return None

    def put(self, asked: Unanswered, answers: Iterable[bool | None]) -> None:
        """Enter results: one for each offer of `asked`, in the same order."""
        known = self._entered(asked.expressions)
        before = len(known.answers)
        digests = (offer.digest for offer in asked.offers)
        known.answers.update(zip(digests, answers, strict=True))
        self._room += len(known.answers) - before
        self._drop()

    def put_too_slow(self, expressions: Expressions) -> None:
        """The evaluation of these takes too long: `missing` does not return them any more."""
        self._entered(expressions).is_too_slow = True
        self._drop()

    def _refuses(self, selectors: Selectors, offer: Offer) -> bool:
        return self.answer(selectors, offer) is False

    def _known_of(self, selectors: Selectors) -> _Known:
        return self._known.get(selectors, _NOTHING)

    def _touch(self, expressions: Expressions) -> _Known:
        known = self._known.pop(expressions, None)
        if known is None:
            return _NOTHING
        self._known[expressions] = known
        return known

    def _entered(self, expressions: Expressions) -> _Known:
        if expressions not in self._known:
            self._known[expressions] = _Known()
            self._room += _room_of(expressions)
        return self._touch(expressions)

    def _drop(self) -> None:
        """Drop the least recently used expressions until the size is allowed."""
        while self._room > self._most:
            expressions = next(iter(self._known))
            known = self._known.pop(expressions)
            self._room -= _room_of(expressions) + len(known.answers)


def evaluable(criteria: DeviceCriteria) -> Iterator[Expressions]:
    """The expressions of the class, and those of the request, where all of them are CEL."""
    for selectors in criteria.selectors:
        expressions = tuple(text for text in selectors if text is not None)
        if expressions and len(expressions) == len(selectors):
            yield expressions


def _room_of(selectors: Selectors) -> int:
    return 1 + sum(len(text or "") for text in selectors) // CHARACTERS
