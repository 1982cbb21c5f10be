"""Adoption: what to make of slices that the API server did not store as they were written.

An API server drops the fields of features that are off. `Features` says at the start which ones;
one that is switched off later would make an endless loop of updates. So what came back is adopted:
a stored slice is up to date if it holds what is wanted, or what became of exactly that.

Comparing "but for dropped fields" would need no memory. But a field that an old version of the
driver never wrote looks like one that was dropped, and the new version's would never get there.
The price of memory is one write too many of each such slice after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping

from driver.publishing.written.resource_slices import SliceContent

Adopted = Mapping[int, tuple[SliceContent, SliceContent]]
"""What was wanted and what it became, by the slice's index; losing it costs a write."""


def holds(adopted: Adopted, index: int, wanted: SliceContent, stored: SliceContent) -> bool:
    """Whether a stored slice holds what is wanted, or what became of it."""
    if stored.equals(wanted):
        return True
    asked, became = adopted.get(index, (None, None))
    return bool(asked and became and asked.equals(wanted) and became.equals(stored))


def adopt(adopted: Adopted, index: int, wanted: SliceContent, stored: SliceContent) -> Adopted:
    """Take note of the API server's answer to a create or update."""
    others = {other: entry for other, entry in adopted.items() if other != index}
    return others if stored.equals(wanted) else {**others, index: (wanted, stored)}
