"""What is to be evaluated before the cost of a claim is known, and the claims that wait for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from scheduler_plugin.objects.devices.selections import (
    Expressions,
    Selections,
    Selectors,
    digest_of_look,
    evaluable,
)
from scheduler_plugin.objects.names import ClaimUid
from scheduler_plugin.objects.tables import Index, enter


class OpenLook(NamedTuple):
    """Expressions that are to be evaluated for devices of a look."""

    expressions: Expressions
    look: str


@dataclass(frozen=True, slots=True, eq=False)
class OpenGroup:
    """What a request or a device waits for. Claims of one template have the same object."""

    looks: tuple[OpenLook, ...]


class SelectedLook(NamedTuple):
    """Whether expressions select devices of a look; None if they cannot be evaluated."""

    expressions: Expressions
    look: str
    answer: bool | None


def is_refused(groups: Iterable[Selectors], look: str, selections: Selections) -> bool:
    """Whether a result says that devices of a look are not selected."""
    digest = digest_of_look(look)
    return any(selections.of(group).answers.get(digest) is False for group in groups)


def open_look(groups: Iterable[Selectors], look: str, selections: Selections) -> Iterator[OpenLook]:
    """What to evaluate next for a look that no result refuses; nothing if all is known.

    The expressions of a request concern only devices that its class selects, so they come after
    those of the class.
    """
    digest = digest_of_look(look)
    for expressions in evaluable(groups):
        if selections.touch(expressions).is_open(digest):
            yield OpenLook(expressions, look)
            return


class OpenLooks:
    """The claims whose cost is not known exactly, with what is to be evaluated for each.

    Thousands of claims of one template wait for the same thousands of looks, so these are one
    object.
    """

    def __init__(self) -> None:
        self._of_claim: dict[ClaimUid, tuple[OpenGroup, ...]] = {}
        self._claims: Index[OpenGroup, ClaimUid] = {}

    def __contains__(self, uid: ClaimUid) -> bool:
        return uid in self._of_claim

    def __bool__(self) -> bool:
        return bool(self._of_claim)

    def put(self, uid: ClaimUid, groups: Iterable[OpenGroup]) -> None:
        """Set what is to be evaluated for a claim."""
        enter(self._claims, self._of_claim.pop(uid, ()), uid, -1)
        if found := tuple(dict.fromkeys(groups)):
            self._of_claim[uid] = found
            enter(self._claims, found, uid)

    def claims_of(self, looks: Iterable[OpenLook]) -> list[ClaimUid]:
        """The claims that wait for any of these."""
        wanted = {*looks}
        groups = (each for each in self._claims if not wanted.isdisjoint(each.looks))
        return list(dict.fromkeys(uid for group in groups for uid in self._claims[group]))

    def claims_awaiting(self, expressions: Expressions) -> list[ClaimUid]:
        """The claims that wait for a result of these expressions."""
        return self.claims_of([OpenLook(expressions, look) for look in self.of(expressions)])

    def of(self, expressions: Expressions) -> list[str]:
        """The looks that these expressions are to be evaluated for."""
        return list(self.by_expressions().get(expressions, ()))

    def by_expressions(self) -> Mapping[Expressions, list[str]]:
        """All that is to be evaluated: the looks, for each of the expressions."""
        found: dict[Expressions, dict[str, None]] = {}
        for group in self._claims:
            for expressions, look in group.looks:
                found.setdefault(expressions, {})[look] = None
        return {expressions: list(looks) for expressions, looks in found.items()}
