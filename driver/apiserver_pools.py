"""One pool of ResourceSlices on the API server, kept what is decided about it.

    supply, what was written ──publish──► Publication ──► groups ──plan_pool──► writes

What a pool shows survives the process that wrote it: a publisher begins with what is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from driver.adoption import Adopted, feature_gates
from driver.api import DRIVER_NAME
from driver.apiserver import write_pool
from driver.pools import DesiredPool, PoolPlan, Refused, plan_pool
from driver.publication import Publication, either, publication_of, stored_devices
from driver.resource_slices import Scope, SliceDevice, SliceView, slice_device
from driver.shards import DeviceGroup
from driver.slice_writes import Owner
from kube.api import ApiClient, ApiError, JsonObject, UnavailableError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredSlices:
    """The slices that the API server has, own writes included.

    Attributes:
        views: Anew at each call; those of other pools are left alone.
        note: Takes each answer to a write, so that the next call shows it.
    """

    views: Callable[[], Iterable[SliceView]]
    note: Callable[[JsonObject], None]


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool that somebody publishes.

    Attributes:
        scope: Who sees its devices.
        read_owner: Asks for the object whose end is the end of the slices; None where there is
            none.
    """

    name: str
    scope: Scope
    read_owner: Callable[[], Awaitable[Owner]] | None = None


class PoolPublisher:
    """Writes one pool.

    Attributes:
        written: The publication that the API server has; if a write failed, all it may have.
    """

    def __init__(self, client: ApiClient, pool: Pool, slices: StoredSlices) -> None:
        self.written = Publication({})
        self._client = client
        self._pool = pool
        self._slices = slices
        self._owner: Owner | None = None
        self._adopted = Adopted()

    def recall(self) -> None:
        """Go on from what an earlier process published; the slices must be in sync."""
        self.written = publication_of(stored_devices(self._slices.views(), self._pool.name))

    async def write(self, publication: Publication) -> None:
        """Let the pool show this.

        Raises:
            ApiError: After the first write that fails; decide anew, and write that.
        """
        devices = tuple(slice_device(offer.body) for offer in publication.offers.values())
        plan = await self._plan(devices)
        before = self._adopted
        try:
            self._adopted = await write_pool(self._client, plan, before, self._slices.note)
        except ApiError as error:
            if _may_have_written(plan, error):
                self.written = either(self.written, publication)
            raise
        _log_written(self._pool.name, plan, devices, self._adopted.dropped - before.dropped)
        self.written = publication

    async def _plan(self, devices: tuple[SliceDevice, ...]) -> PoolPlan:
        plan = self._plan_for(self._owner or await self._read_owner(), devices)
        if plan.creates and self._pool.read_owner:
            # The owner may have been made anew, and slices of the old one are collected with it.
            plan = self._plan_for(await self._read_owner(), devices)
        return plan

    async def _read_owner(self) -> Owner | None:
        if self._pool.read_owner is not None:
            self._owner = await self._pool.read_owner()
        return self._owner

    def _plan_for(self, owner: Owner | None, devices: tuple[SliceDevice, ...]) -> PoolPlan:
        desired = DesiredPool(
            name=self._pool.name,
            driver=DRIVER_NAME,
            groups=(DeviceGroup(self._pool.scope, devices),),
            owner=owner,
        )
        plan = plan_pool(desired, tuple(self._slices.views()), self._adopted)
        if isinstance(plan, Refused):
            logger.error("not published: %s", plan.sentence)
            return PoolPlan()
        return plan


def _may_have_written(plan: PoolPlan, error: ApiError) -> bool:
    unanswered = isinstance(error, UnavailableError) and error.may_have_happened
    return unanswered or len(plan.writes) > 1


def _log_written(
    pool: str, plan: PoolPlan, devices: tuple[SliceDevice, ...], dropped: frozenset[str]
) -> None:
    if plan.writes:
        logger.info("published pool=%s devices=%d writes=%d", pool, len(devices), len(plan.writes))
    if dropped:
        gates = ", ".join(feature_gates(dropped)) or "none known"
        fields = ", ".join(sorted(dropped))
        logger.warning("the API server dropped fields=%s feature_gates=%s", fields, gates)
