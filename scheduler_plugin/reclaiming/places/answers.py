"""What CEL says of devices: for some expressions, and a device as CEL sees it, the last answer.

Devices that CEL cannot tell apart share an answer, and so do requests with the same expressions.
Expressions of the class and of the request are answered apart: what one user writes costs nobody
else's. A device may fit while there is no answer: where none was asked for yet, where it cannot be
evaluated, and where it takes too long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from scheduler_plugin.reclaiming.places.offers import DeviceRequest, Offer

MOST_ANSWERS = 1_000_000
"""How many are kept at one time, at about 100 bytes each."""

CHARACTERS = 100
"""Of expressions that take the room of one answer."""

Selectors: TypeAlias = tuple[str | None, ...]
"""CEL, and None for what is no CEL."""

Expressions: TypeAlias = tuple[str, ...]


class Unanswered(NamedTuple):
    """Expressions to be evaluated, and for each device that CEL can tell apart an offer of one."""

    expressions: Expressions
    offers: tuple[Offer, ...]


@dataclass(slots=True)
class _Known:
    """What is known of some expressions.

    Attributes:
        answers: By digest of a device; None where they cannot be evaluated.
    """

    is_too_slow: bool = False
    answers: dict[int, bool | None] = field(default_factory=dict)


_NOTHING = _Known()


class Answers:
    """The answers; beyond their number those go whose expressions were not needed for longest."""

    def __init__(self, most: int = MOST_ANSWERS) -> None:
        self._most = most
        self._room = 0
        # Those needed last are last.
        self._known: dict[Selectors, _Known] = {}

    def __len__(self) -> int:
        return sum(len(known.answers) for known in self._known.values())

    def accepts(self, request: DeviceRequest, offer: Offer) -> bool:
        """Whether a device may fit a request, were it free.

        False for a device that no request gets: its pool is not complete, or it is tainted.
        """
        if not request.may_have(offer):
            return False
        return not any(self._refuses(each, offer) for each in request.selectors)

    def answer(self, selectors: Selectors, offer: Offer) -> bool | None:
        """What selectors say of a device; None where there is no answer."""
        return self._known_of(selectors).answers.get(offer.digest)

    def known(self, request: DeviceRequest) -> int:
        """Another number once more is known of a request's selectors."""
        found = [self._known_of(selectors) for selectors in request.selectors]
        return sum(2 * len(known.answers) + known.is_too_slow for known in found)

    def is_too_slow(self, selectors: Selectors) -> bool:
        """Whether evaluating them takes too long, as far as is known."""
        return self._known_of(selectors).is_too_slow

    def missing(
        self,
        request: DeviceRequest,
        offers: Iterable[Offer],
        skipped: Collection[Expressions] = (),
    ) -> Unanswered | None:
        """What is to be evaluated next, so that it is known which devices fit; None for nothing.

        Expressions of the request are about devices that those of the class do not refuse: so they
        come once the others are answered.

        Args:
            request: For what.
            offers: Of these devices.
            skipped: Expressions that are not to be evaluated for this request.
        """
        left = [offer for offer in offers if request.may_have(offer)]
        for expressions in evaluable(request):
            known = self._touch(expressions)
            if not known.is_too_slow and expressions not in skipped:
                found = {o.digest: o for o in left if o.digest not in known.answers}
                if found:
                    return Unanswered(expressions, tuple(found.values()))
            left = [offer for offer in left if not self._refuses(expressions, offer)]
        return None

    def put(self, asked: Unanswered, answers: Iterable[bool | None]) -> None:
        """Enter what came of evaluating: an answer for each offer, in their order."""
        known = self._entered(asked.expressions)
        before = len(known.answers)
        digests = (offer.digest for offer in asked.offers)
        known.answers.update(zip(digests, answers, strict=True))
        self._room += len(known.answers) - before
        self._drop()

    def put_too_slow(self, expressions: Expressions) -> None:
        """Evaluating these takes too long: they are missing no more."""
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
        """Make room; what is too much by itself goes, too."""
        while self._room > self._most:
            expressions = next(iter(self._known))
            known = self._known.pop(expressions)
            self._room -= _room_of(expressions) + len(known.answers)


def evaluable(request: DeviceRequest) -> Iterator[Expressions]:
    """Those of the class and of the request, where all are CEL, and there are any."""
    for selectors in request.selectors:
        expressions = tuple(text for text in selectors if text is not None)
        if expressions and len(expressions) == len(selectors):
            yield expressions


def _room_of(selectors: Selectors) -> int:
    return 1 + sum(len(text or "") for text in selectors) // CHARACTERS
