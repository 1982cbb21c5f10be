"""The devices that match a request, cached for each pool while the pool does not change.

The cache makes devices that do not match free in later calls. The first calls look at `MOST_NEW`
devices each.
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
"""The largest number of devices that one call looks at for the first time."""

MOST_ASKS = 64
"""The largest number of requests in the cache."""


class _Known(NamedTuple):
    """The cache entry of one pool.

    Attributes:
        answers: The version of the CEL results used; None where the entry is final.
        offers: The devices that match.
    """

    pool: Pool
    answers: int | None
    offers: tuple[Offer, ...]


class AcceptedDevices:
    """The matching devices for the requests that were used last."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._known: dict[Ask, dict[tuple[str, str], _Known]] = {}

    def of(self, ask: Ask) -> Iterator[Offer | None]:
        """The devices that match, free or not; at the end None for devices not looked at yet."""
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
