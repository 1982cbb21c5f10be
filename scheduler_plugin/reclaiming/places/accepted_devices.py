"""Which devices would do for what is asked, kept for each pool as long as that is the same.

Thousands of devices that would not do cost nothing when it is asked again; at first no more than
some of them are looked at in one call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.reclaiming.places.offered_devices import Pool
from scheduler_plugin.reclaiming.places.offers import Offer
from scheduler_plugin.reclaiming.places.seekers import Ask
from scheduler_plugin.reclaiming.places.stock import Stock

MOST_NEW = 1_000
"""Devices that one call looks at for the first time."""

MOST_ASKS = 64
"""For how many kinds it is kept."""


class _Known(NamedTuple):
    """What is known of one pool.

    Attributes:
        answers: How much CEL had said by then; None where nothing more can come.
    """

    pool: Pool
    answers: int | None
    offers: tuple[Offer, ...]


class AcceptedDevices:
    """The devices that may fit, for the asks that somebody asked about last."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._known: dict[Ask, dict[tuple[str, str], _Known]] = {}

    def of(self, ask: Ask) -> Iterator[Offer | None]:
        """Those that may fit, were they free; None in place of the rest that it did not look at."""
        known = self._known[ask] = self._known.pop(ask, {})
        if len(self._known) > MOST_ASKS:
            del self._known[next(iter(self._known))]
        answers, left = self._stock.answers.known(ask.request), MOST_NEW
        for key, pool in self._stock.devices.pools(ask.drivers):
            found = known.get(key)
            if found is None or found.pool is not pool or found.answers not in (None, answers):
                if left <= 0:
                    yield None
                    return
                left -= len(pool.devices)
                found = known[key] = self._look(ask, pool, answers)
            yield from found.offers

    def _look(self, ask: Ask, pool: Pool, answers: int) -> _Known:
        devices = [found.device for found in pool.devices.values()]
        offers = tuple(
            self._offer(device) for device in devices if self._stock.accepts(ask, device)
        )
        missing = self._stock.answers.missing(ask.request, offers)
        return _Known(pool, None if missing is None else answers, offers)

    def _offer(self, device: DeviceId) -> Offer:
        offer = self._stock.devices.offer(device)
        assert offer is not None, "it was accepted a moment ago"
        return offer
