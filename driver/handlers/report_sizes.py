"""The sizes of the answers of registered handlers, and whether another answer fits.

    answers, by handler and Configuration ──► sums: of the handler, of all of its kind on the node

Devices stay in memory until their handler is removed, and there may be many handlers. So all
handlers of a node together have a limit. Handlers without privileges have a fixed share of it, and
the others have the rest. Within a share the first answers are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from driver.api import ConfigurationName
from driver.handlers.registrations import Endpoint, Registration
from driver.handlers.report_limits import Amount, HandlerLimits, too_many, too_many_together

_Place = tuple[Endpoint, ConfigurationName]


@dataclass(slots=True)
class Reported:
    """The sizes of the last answers."""

    limits: HandlerLimits
    _amounts: dict[bool, dict[_Place, Amount]] = field(
        default_factory=lambda: {True: {}, False: {}}
    )

    def excess(
        self, registration: Registration, name: ConfigurationName, amount: Amount
    ) -> str | None:
        """A sentence: which limit an answer would exceed; None for no limit."""
        place, amounts = (registration.endpoint, name), self._amounts[registration.unprivileged]
        others = {at: one for at, one in amounts.items() if at != place}
        own = _sum(one for (endpoint, _), one in others.items() if endpoint == place[0])
        if own.devices + amount.devices > self.limits.most_devices:
            return too_many(self.limits.most_devices)
        if not (_sum(others.values()) + amount).fits(self.limits.share(registration)):
            return too_many_together(self.limits.share(registration), registration)
        return None

    def enter(self, registration: Registration, name: ConfigurationName, amount: Amount) -> None:
        """Record the size of an answer, in place of the one before."""
        self._amounts[registration.unprivileged][registration.endpoint, name] = amount

    def keep(self, is_kept: Callable[[Endpoint, ConfigurationName], bool]) -> None:
        """Keep only these answers, and drop the others."""
        for amounts in self._amounts.values():
            for place in [place for place in amounts if not is_kept(*place)]:
                del amounts[place]


def _sum(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, start=Amount())
