"""Which offered devices match requests, by the results of CEL.

Requests with the same expressions share results. The expressions of the DeviceClass and of the
request are evaluated apart, so that one user's request does not make another's slower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from scheduler_plugin.objects.devices.selections import (
    Expressions,
    Selections,
    Selectors,
    evaluable,
)
from scheduler_plugin.reclaiming.placement.offers import DeviceCriteria, Offer


class Unanswered(NamedTuple):
    """Expressions to evaluate, with one device for each group that looks equal to CEL."""

    expressions: Expressions
    offers: tuple[Offer, ...]


class Answers:
    """The results for requests, beside those that accounting uses."""

    def __init__(self, selections: Selections | None = None) -> None:
        self._selections = selections if selections is not None else Selections()

    def __len__(self) -> int:
        return len(self._selections)

    def accepts(self, criteria: DeviceCriteria, offer: Offer) -> bool:
        """Whether a device may match a request, free or not.

        False where its pool is incomplete, or the request does not tolerate a taint.
        """
        if not criteria.may_have(offer):
            return False
        return not any(self._refuses(each, offer) for each in criteria.selectors)

    def answer(self, selectors: Selectors, offer: Offer) -> bool | None:
        """The result of selectors for a device; None where there is none."""
        return self._selections.of(selectors).answers.get(offer.digest)

    def known(self, criteria: DeviceCriteria) -> int:
        """The version of the results for a request: another number after each new result."""
        found = [self._selections.of(selectors) for selectors in criteria.selectors]
        return sum(2 * len(known.answers) + known.is_too_slow for known in found)

    def is_too_slow(self, selectors: Selectors) -> bool:
        """Whether the evaluation of these selectors is known to take too long."""
        return self._selections.of(selectors).is_too_slow

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
        for expressions in evaluable(criteria.selectors):
            known = self._selections.touch(expressions)
            if not known.is_too_slow and expressions not in skipped:
                found = {o.digest: o for o in left if o.digest not in known.answers}
                if found:
                    return Unanswered(expressions, tuple(found.values()))
            left = [offer for offer in left if not self._refuses(expressions, offer)]
        return None

    def put(self, asked: Unanswered, answers: Iterable[bool | None]) -> None:
        """Enter results: one for each offer of `asked`, in the same order."""
        digests = (offer.digest for offer in asked.offers)
        self._selections.put(asked.expressions, dict(zip(digests, answers, strict=True)))

    def put_too_slow(self, expressions: Expressions) -> None:
        """The evaluation of these takes too long: `missing` does not return them any more."""
        self._selections.put_too_slow(expressions)

    def _refuses(self, selectors: Selectors, offer: Offer) -> bool:
        return self.answer(selectors, offer) is False
