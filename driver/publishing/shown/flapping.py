"""Flapping: devices that come again and again are shown only when they have stayed.

    names that there are, again and again ──seen──► Comings ──held──► whom to wait for, until when

The first changes of a device are shown at once. One that came more than `MOST_COMINGS` times within
`WINDOW_SECONDS` counts as away, with its taint if it is shown, until it has been there for
`STEADY_SECONDS`: each change of a slice makes kube-scheduler try waiting pods again.

Nothing of this outlives the process: losing it costs a few writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver.api import InstanceName

MOST_COMINGS = 3
"""That many are shown at once: a plug that is put in with a shaking hand, a hub that starts."""

WINDOW_SECONDS = 30.0

STEADY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Comings:
    """When devices of a pool came.

    Attributes:
        present: Those that are there now; None before anybody looked, when nothing has come yet.
        times: Of those that came lately, the last of their comings, in seconds of any clock.
    """

    present: frozenset[InstanceName] | None = None
    times: Mapping[InstanceName, tuple[float, ...]] = field(default_factory=dict)

    def held(self, now: float) -> Mapping[InstanceName, float]:
        """The devices that are there and count as away, and until when."""
        return {
            name: times[-1] + STEADY_SECONDS
            for name, times in self.times.items()
            if len(times) > MOST_COMINGS
            and times[-1] + STEADY_SECONDS > now
            and times[0] > times[-1] - WINDOW_SECONDS
            and name in (self.present or ())
        }


def seen(before: Comings, names: Iterable[InstanceName], now: float) -> Comings:
    """The same after another look at which devices there are."""
    present = frozenset(names)
    came = frozenset[InstanceName]() if before.present is None else present - before.present
    if not came and not before.times:
        return Comings(present)
    times = {n: t for n, t in before.times.items() if t[-1] > now - WINDOW_SECONDS}
    for name in came:
        times[name] = (*times.get(name, ())[-MOST_COMINGS:], now)
    return Comings(present, times)
