"""The devices that match a request, cached for each pool while the pool does not change.

The cache makes devices that do not match free in later calls. The first calls look at `MOST_NEW`
devices each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.reclaiming.placement.demands import DeviceRequest
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.offered_devices import Pool
from scheduler_plugin.reclaiming.placement.offers import Offer

MOST_NEW = 1_000
"""The largest number of devices that one call looks at for the first time."""

MOST_REQUESTS = 64
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

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._known: dict[DeviceRequest, dict[tuple[str, str], _Known]] = {}

    def of(self, request: DeviceRequest) -> Iterator[Offer | None]:
        """The devices that match, free or not; at the end None for devices not looked at yet."""
        known = self._known[request] = self._known.pop(request, {})
        if len(self._known) > MOST_REQUESTS:
            del self._known[next(iter(self._known))]
        answers, left = self._inventory.answers.known(request.criteria), MOST_NEW
        for key, pool in self._inventory.devices.pools(request.drivers):
            found = known.get(key)
            if found is None or found.pool is not pool or found.answers not in (None, answers):
                if left <= 0:
                    yield None
                    return
                left -= len(pool.devices)
                found = known[key] = self._look(request, pool, answers)
            yield from found.offers

    def pool_of(self, offer: Offer | None) -> Pool | None:
        """The pool of a device; None for the devices that were not looked at yet."""
        if offer is None:
            return None
        return self._inventory.devices.pool(offer.device.driver, offer.device.pool)

    def _look(self, request: DeviceRequest, pool: Pool, answers: int) -> _Known:
        devices = [found.device for found in pool.devices.values()]
        offers = tuple(
            self._offer(device) for device in devices if self._inventory.accepts(request, device)
        )
        missing = self._inventory.answers.missing(request.criteria, offers)
        return _Known(pool, None if missing is None else answers, offers)

    def _offer(self, device: DeviceId) -> Offer:
        offer = self._inventory.devices.offer(device)
        assert offer is not None, "it was accepted a moment ago"
        return offer
