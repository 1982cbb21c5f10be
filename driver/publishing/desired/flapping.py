"""Flapping: a device that comes and goes repeatedly is published only once it is steady.

    names of present devices, observed repeatedly ──seen──► Comings ──held──► held back, until when

The first changes of a device are published at once. A device that came more than `MOST_ARRIVALS`
times within `WINDOW_SECONDS` counts as absent, with its taint if it is published, until it has been
present for `STEADY_SECONDS`. The reason: each change of a slice makes kube-scheduler retry pending
pods.

This state does not outlive the process. Losing it costs a few writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver.api import InstanceName

MOST_ARRIVALS = 3
"""Arrivals within the window that are published at once. A loose plug or a hub that starts causes
some."""

WINDOW_SECONDS = 30.0

STEADY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When the devices of a pool arrived.

    Attributes:
        present: The devices that are present; None before the first observation.
        times: The last arrivals of each device that arrived within the window, in seconds of a
            clock that never steps back.
    """

    present: frozenset[InstanceName] | None = None
    times: Mapping[InstanceName, tuple[float, ...]] = field(default_factory=dict)

    def held(self, now: float) -> Mapping[InstanceName, float]:
        """The devices that are present and count as absent, each with the second it ends at."""
        return {
            name: times[-1] + STEADY_SECONDS
            for name, times in self.times.items()
            if len(times) > MOST_ARRIVALS
            and times[-1] + STEADY_SECONDS > now
            and times[0] > times[-1] - WINDOW_SECONDS
            and name in (self.present or ())
        }


def seen(before: Arrivals, names: Iterable[InstanceName], now: float) -> Arrivals:
    """The arrivals after another observation; `names` are the devices that are present."""
    present = frozenset(names)
    came = frozenset[InstanceName]() if before.present is None else present - before.present
    if not came and not before.times:
        return Arrivals(present)
    times = {n: t for n, t in before.times.items() if t[-1] > now - WINDOW_SECONDS}
    for name in came:
        times[name] = (*times.get(name, ())[-MOST_ARRIVALS:], now)
    return Arrivals(present, times)
