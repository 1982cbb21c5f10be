"""Reconciles one pool of ResourceSlices with its devices.

    supply ──use──► steady devices ──decide──► Publication ──► PoolPublisher ──► ResourceSlices

Pools are reconciled concurrently and without an order between them, so a pool of one device does
not wait for a pool of thousands: see `docs/design/publishing.md`. `node_pools` and `cluster_pools`
say which pools exist.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter

from driver.plumbing.prometheus import CHANGES_HELD_BACK
from driver.publishing.apiserver_slices import PoolPublisher
from driver.publishing.desired.flapping import Arrivals, seen
from driver.publishing.desired.local_pools import traces_of, traces_of_instance
from driver.publishing.desired.pace import Pace
from driver.publishing.desired.publication import Publication, Supply
from kube.reconciling.api import After, Done, Result

Decide = Callable[[Supply, Publication], Awaitable[Publication]]
"""The next publication, decided from the supply and from the publication that is written."""


POOLS_AT_ONCE = 1000
"""Workers of the queue: in practice one for each pool, so that no pool waits for another."""


@dataclass(frozen=True, slots=True)
class PoolListeners:
    """Callbacks of the pools.

    Attributes:
        decided: Called when the devices of a pool may have changed.
        gone: Called when devices were removed from all slices.
        unknown: Called when a stored pool appears for which no supply was given.
        writing: Entered while slices are written.
        published: Called with the seconds from a change until its slices were written.
    """

    decided: Callable[[], None] = lambda: None
    gone: Callable[[], None] = lambda: None
    unknown: Callable[[], None] = lambda: None
    writing: Callable[[], AbstractContextManager[None]] = nullcontext
    published: Callable[[float], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class PoolWork:
    """The functions that differ between the pools of a node and shared pools.

    Attributes:
        decide: Decides the next publication.
        written: Called after each write, also after one that failed.
        look: Returns the supply, called in each reconciliation; None if `PublishedPool.use` is
            called instead.
    """

    decide: Decide
    written: Callable[[Publication], None]
    look: Callable[[], Supply] | None = None


class PublishedPool:
    """One pool.

    Attributes:
        current: The publication that was decided last. The kubelet plugin prepares from it.
    """

    def __init__(
        self,
        publisher: PoolPublisher,
        work: PoolWork,
        listeners: PoolListeners,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Create; `clock` returns seconds and never steps back."""
        self.current = publisher.written
        self._publisher = publisher
        self._work = work
        self._listeners = listeners
        self._clock = clock
        self._supply: Supply | None = None
        self._deciding: Supply | None = None
        self._arrivals = Arrivals()
        self._held: frozenset[str] = frozenset()
        self._pace = Pace()
        self._is_put_off = False
        # The time of the first change that is not written yet; None if all changes are written.
        self._changed_at: float | None = None

    @property
    def written(self) -> Publication:
        """The publication that the API server has; after a failed write, all that it may have."""
        return self._publisher.written

    @property
    def shown(self) -> tuple[Publication, ...]:
        """All publications that its slices may show."""
        return (self._publisher.written, self.current)

    @property
    def is_idle(self) -> bool:
        """Whether it has no devices and nothing to write."""
        empty = not any(publication.offers for publication in self.shown)
        return empty and not (self._supply and self._supply.instances)

    @property
    def traces(self) -> frozenset[str]:
        """The keys (`traces_of`) of the devices that its slices show, may show or will show."""
        deciding = map(traces_of_instance, self._deciding.instances if self._deciding else ())
        return frozenset().union(*map(traces_of, self.shown), *deciding)

    def use(self, supply: Supply) -> bool:
        """Take a new supply; returns whether it differs from the one before."""
        names = (instance.name for instance in supply.instances)
        self._arrivals = seen(self._arrivals, names, self._clock())
        if supply == self._supply:
            return False
        self._supply = supply
        if self._changed_at is None:
            self._changed_at = self._clock()
        return True

    async def reconcile(self) -> Result:
        """Decide and write, unless the pool's rate limit defers it. Raises ApiError."""
        now = self._clock()
        if (wait := self._pace.wait(now)) > 0:
            self._put_off()
            return After(wait)
        if self._work.look is not None:
            self.use(self._work.look())
        if self._supply is None:
            return Done()
        supply, before = self._supply, self._publisher.written
        steady, steady_at = self._steady(supply, now)
        publication = await self._decided(steady, before)
        await self._write(publication)
        if self._changed_at is not None and supply is self._supply:
            self._listeners.published(self._clock() - self._changed_at)
            self._changed_at = None
        if before.offers.keys() - publication.offers.keys():
            self._listeners.gone()
        recheck_at = publication.recheck_at
        due = (recheck_at - datetime.now(UTC)).total_seconds() if recheck_at else None
        soonest = min((s for s in (due, steady_at) if s is not None), default=None)
        return Done() if soonest is None else After(soonest)

    def _put_off(self) -> None:
        """Count a deferred write once, however often the pool changes until it is written."""
        if not self._is_put_off:
            CHANGES_HELD_BACK.labels("rate").inc()
        self._is_put_off = True

    def _steady(self, supply: Supply, now: float) -> tuple[Supply, float | None]:
        """The supply without devices that flap, and the seconds until the first of them counts."""
        held = self._arrivals.held(now)
        CHANGES_HELD_BACK.labels("flapping").inc(len(held.keys() - self._held))
        self._held = frozenset(held)
        if not held:
            return supply, None
        steady = tuple(i for i in supply.instances if i.name not in held)
        return replace(supply, instances=steady), min(held.values()) - now

    async def _write(self, publication: Publication) -> None:
        self._is_put_off = False
        try:
            with self._listeners.writing():
                if await self._publisher.write(publication):
                    self._pace = self._pace.written(self._clock())
        finally:
            self._work.written(publication)

    async def _decided(self, supply: Supply, written: Publication) -> Publication:
        self._deciding = supply
        try:
            self.current = publication = await self._work.decide(supply, written)
        finally:
            self._deciding = None
        self._listeners.decided()
        return publication
