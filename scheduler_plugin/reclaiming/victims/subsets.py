"""Which few of several candidates may be enough, by the most that each of them brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

MOST_CANDIDATES = 32
"""Among how many it is looked for fewer that are enough."""

MOST_STEPS = 4_000
"""How many beginnings of sets are looked at for one pod; what was found until then is kept."""

OF_ONE_TRY = 40
"""As how many steps it counts to try a set."""

IN_ONE_STEP = 200

_ROUNDING = 1e-9

Amounts = Sequence[float]
"""One amount of each thing that is lacking."""


@dataclass(slots=True)
class Effort:
    """How many steps are left."""

    left: int = MOST_STEPS


def subsets(
    size: int, needs: Amounts, gains: Sequence[Amounts], effort: Effort
) -> Iterator[tuple[int, ...]]:
    """Each set of so many that may be enough, as numbers of candidates: the first in order first.

    An empty one where others may have their turn. It ends early once no effort is left.

    Args:
        size: At least 1.
        needs: What is lacking.
        gains: By candidate, the most that it brings with whomever.
        effort: Is made smaller.
    """
    yield from _Subsets(gains, _tops(size, len(needs), gains), effort).longer((), 0, needs, size)


def _tops(size: int, kinds: int, gains: Sequence[Amounts]) -> list[list[list[float]]]:
    """By candidate, kind and number: the most that so many bring, of it and those after it."""
    best: list[list[float]] = [[] for _ in range(kinds)]
    tops = [[[0.0] * (size + 1) for _ in range(kinds)]]
    for gain in reversed(gains):
        best = [nlargest(size, (*best[kind], gain[kind])) for kind in range(kinds)]
        tops.append([[sum(found[:n]) for n in range(size + 1)] for found in best])
    return tops[::-1]


@dataclass(frozen=True, slots=True)
class _Subsets:
    gains: Sequence[Amounts]
    tops: list[list[list[float]]]
    effort: Effort

    def longer(
        self, chosen: tuple[int, ...], start: int, needs: Amounts, left: int
    ) -> Iterator[tuple[int, ...]]:
        """Sets that begin with those chosen, and have so many more from `start` on."""
        if not left:
            self.effort.left -= OF_ONE_TRY
            yield chosen
            return
        for number in range(start, len(self.gains) - left + 1):
            if self.effort.left <= 0 or not self._may_be_enough(needs, number, left):
                return
            self.effort.left -= 1
            if self.effort.left % IN_ONE_STEP == 0:
                yield ()
            gain = self.gains[number]
            rest = [need - more for need, more in zip(needs, gain, strict=True)]
            if self._may_be_enough(rest, number + 1, left - 1):
                yield from self.longer((*chosen, number), number + 1, rest, left - 1)

    def _may_be_enough(self, needs: Amounts, start: int, left: int) -> bool:
        most = self.tops[start]
        return all(n <= top[left] + _ROUNDING for n, top in zip(needs, most, strict=True))
