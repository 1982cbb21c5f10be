"""Adoption: handles slices that the API server did not store as they were written.

An API server drops the fields of features that are off. `Features` finds these at the start, but a
feature that is switched off later would cause an endless loop of updates. So the driver adopts the
answer: a stored slice is up to date if it equals the desired content, or if the API server answered
it to exactly that content.

A comparison that ignores dropped fields would need no memory. But a field that an older driver
never wrote looks like a dropped field, so the newer driver would never add it. The memory costs one
superfluous write of each such slice after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping

from driver.publishing.apply.resource_slices import SliceContent

Adopted = Mapping[int, tuple[SliceContent, SliceContent]]
"""Desired content and stored answer, by the index of the slice. Losing it costs a write."""


def holds(adopted: Adopted, index: int, wanted: SliceContent, stored: SliceContent) -> bool:
    """Whether a stored slice has the desired content, or the adopted answer to it."""
    if stored.equals(wanted):
        return True
    asked, became = adopted.get(index, (None, None))
    return bool(asked and became and asked.equals(wanted) and became.equals(stored))


def adopt(adopted: Adopted, index: int, wanted: SliceContent, stored: SliceContent) -> Adopted:
    """Record the API server's answer to a create or update."""
    others = {other: entry for other, entry in adopted.items() if other != index}
    return others if stored.equals(wanted) else {**others, index: (wanted, stored)}
