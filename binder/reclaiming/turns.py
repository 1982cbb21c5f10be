"""Whose turn it is among pods that wait: nobody is kept from it by thousands that wait in vain."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, zip_longest

from scheduler_plugin.api import PodUid

ROUND_SECONDS = 0.1
"""How long decisions are begun one after the other: some take long, and thousands may wait."""

NEW_SECONDS = 0.4
"""How long a pod that was never asked waits for its turn at most, apart from others like it."""


class Turns:
    """Remembers who was asked, and when."""

    def __init__(self) -> None:
        # Whoever was asked longest ago is first.
        self._asked: dict[PodUid, None] = {}

    def is_new(self, uid: PodUid) -> bool:
        """Whether a pod was never asked."""
        return uid not in self._asked

    def asked(self, uid: PodUid) -> None:
        """A pod has its turn now."""
        self._asked.pop(uid, None)
        self._asked[uid] = None

    def forget(self, uid: PodUid) -> None:
        """A pod waits no more."""
        self._asked.pop(uid, None)

    def order(self, due: Collection[PodUid]) -> Iterator[PodUid]:
        """Each once: the most urgent that is new; the most urgent; the next one of either.

        After those that are new come those that were asked longest ago: by urgency alone a few that
        wait in vain would be all that are ever asked.

        Args:
            due: The most urgent first.
        """
        among = frozenset(due)
        new = (uid for uid in due if self.is_new(uid))
        return by_turns(chain(new, [uid for uid in self._asked if uid in among]), due)


def by_turns(*lines: Iterable[PodUid]) -> Iterator[PodUid]:
    """The first of each, then the second of each; each once."""
    found: dict[PodUid, None] = {}
    for uid in chain.from_iterable(zip_longest(*lines)):
        if uid is not None and uid not in found:
            found[uid] = None
            yield uid
