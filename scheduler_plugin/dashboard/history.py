"""Usage and requests of queues in the last hours: a bounded number of rings of samples.

A sample of a queue and a class is two numbers of four bytes, and of eight bytes for an entry by
measure. A figure that was always zero has no ring. So the memory is at most MOST_SERIES * KEPT * 16
bytes, 23 MB, and little if few queues are in use. An unknown value in a ring is a gap, not a zero.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Literal

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.measures import amount_number, is_measured

STEP_SECONDS = 20.0
KEPT = 720
"""The samples in a ring: four hours."""

MOST_SERIES = 2_000
GAP = -1
_LARGEST = {"i": 2**31 - 1, "q": 2**63 - 1}
"""The largest number by the type of an array's numbers."""

Key = tuple[str, str]
"""Queue, and the key of an entry or class."""


@dataclass(frozen=True, slots=True)
class Past:
    """Figures of one queue and entry: devices, or units of a measure.

    Attributes:
        times: Seconds since 1970, the oldest first.
        usage: The usage at each time; None for a gap.
        requested: Usage plus requests at each time; None for a gap.
    """

    times: tuple[float, ...] = ()
    usage: tuple[float | None, ...] = ()
    requested: tuple[float | None, ...] = ()


class _Ring:
    __slots__ = ("last", "requested", "usage")

    def __init__(self, length: int, number: int, key: ResourceKey) -> None:
        kind: Literal["i", "q"] = "q" if is_measured(key) else "i"
        self.usage = array(kind, [GAP]) * length
        self.requested = array(kind, [GAP]) * length
        self.last = number - 1

    def put(self, number: int, usage: int, requested: int) -> None:
        length = len(self.usage)
        for missed in range(max(self.last + 1, number - length + 1), number):
            self.usage[missed % length] = self.requested[missed % length] = GAP
        largest = _LARGEST[self.usage.typecode]
        self.usage[number % length] = min(usage, largest)
        self.requested[number % length] = min(requested, largest)
        self.last = number


class History:
    """The samples: call `begin` for each sample, then `put` for its figures."""

    def __init__(self, kept: int = KEPT, most_series: int = MOST_SERIES) -> None:
        self._kept, self._most = kept, most_series
        self._times = array("d", [0.0]) * kept
        self._number = -1
        self._rings: dict[Key, _Ring] = {}

    def __len__(self) -> int:
        """How many rings there are."""
        return len(self._rings)

    def begin(self, moment: float) -> None:
        """Begin a sample, and forget rings without a value in all kept samples."""
        self._number += 1
        self._times[self._number % self._kept] = moment
        old = [k for k, ring in self._rings.items() if ring.last <= self._number - self._kept]
        for key in old:
            del self._rings[key]

    def put(self, key: Key, usage: int, requested: int) -> None:
        """Note the usage and the requests of a queue and a class in this sample."""
        ring = self._rings.get(key)
        if ring is None:
            if not (usage or requested) or len(self._rings) >= self._most:
                return
            ring = self._rings[key] = _Ring(self._kept, self._number, ResourceKey(key[1]))
        ring.put(self._number, usage, requested)

    def of(self, key: Key) -> Past:
        """All samples of a queue and class."""
        ring = self._rings.get(key)
        if ring is None:
            return Past()
        first = max(0, self._number - self._kept + 1)
        numbers = [n % self._kept for n in range(first, ring.last + 1)]
        return Past(
            times=tuple(self._times[n] for n in numbers),
            usage=tuple(_known(key, ring.usage[n]) for n in numbers),
            requested=tuple(_known(key, ring.requested[n]) for n in numbers),
        )


def _known(key: Key, figure: int) -> float | None:
    return None if figure == GAP else amount_number(ResourceKey(key[1]), figure)
