"""One pool of several, kept what there is for it.

    supply ──use──► those that stay ──decide──► Publication ──► PoolPublisher ──► ResourceSlices

So a pool of one device waits for none of thousands: no order is kept between pools, see
`docs/design/publishing.md`. Which pools there are is said by `node_pools` and `cluster_pools`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter

from driver.plumbing.prometheus import CHANGES_HELD_BACK
from driver.publishing.apiserver_slices import PoolPublisher
from driver.publishing.shown.flapping import Comings, seen
from driver.publishing.shown.local_pools import traces_of, traces_of_instance
from driver.publishing.shown.pace import Pace
from driver.publishing.shown.publication import Publication, Supply
from kube.api import After, Done, Result

Decide = Callable[[Supply, Publication], Awaitable[Publication]]
"""The next publication, from what there is and what is written."""


POOLS_AT_ONCE = 1000
"""As many as there are: a pool waits for no other."""


@dataclass(frozen=True, slots=True)
class PoolListeners:
    """Who hears of the pools.

    Attributes:
        decided: Called when a pool's devices may be others than before.
        gone: Called when devices are in no slice any more.
        unknown: Called when there is a pool of which it was not said what there is for it.
        writing: Entered for as long as slices are written.
        published: Called with the seconds from a change until slices said so.
    """

    decided: Callable[[], None] = lambda: None
    gone: Callable[[], None] = lambda: None
    unknown: Callable[[], None] = lambda: None
    writing: Callable[[], AbstractContextManager[None]] = nullcontext
    published: Callable[[float], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class PoolWork:
    """What is particular to a pool.

    Attributes:
        decide: What to write.
        written: Hears of each write, and of what failed too.
        look: What there is, asked in each call; None where `PublishedPool.use` says it.
    """

    decide: Decide
    written: Callable[[Publication], None]
    look: Callable[[], Supply] | None = None


class PublishedPool:
    """One pool.

    Attributes:
        current: What was decided last; what the kubelet plugin prepares from.
    """

    def __init__(
        self,
        publisher: PoolPublisher,
        work: PoolWork,
        listeners: PoolListeners,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Create; `clock` tells the seconds."""
        self.current = publisher.written
        self._publisher = publisher
        self._work = work
        self._listeners = listeners
        self._clock = clock
        self._supply: Supply | None = None
        self._deciding: Supply | None = None
        self._comings = Comings()
        self._held: frozenset[str] = frozenset()
        self._pace = Pace()
        self._is_put_off = False
        # When the first change came that is not written yet; None where all is.
        self._changed_at: float | None = None

    @property
    def written(self) -> Publication:
        """The publication that the API server has; if a write failed, all it may have."""
        return self._publisher.written

    @property
    def shown(self) -> tuple[Publication, ...]:
        """All that its slices may show."""
        return (self._publisher.written, self.current)

    @property
    def is_idle(self) -> bool:
        """Whether it has no devices, and there is nothing to write."""
        empty = not any(publication.offers for publication in self.shown)
        return empty and not (self._supply and self._supply.instances)

    @property
    def traces(self) -> frozenset[str]:
        """What tells the devices that its slices may show, or will."""
        deciding = map(traces_of_instance, self._deciding.instances if self._deciding else ())
        return frozenset().union(*map(traces_of, self.shown), *deciding)

    def use(self, supply: Supply) -> bool:
        """This is what there is now; returns whether it is something else than before."""
        names = (instance.name for instance in supply.instances)
        self._comings = seen(self._comings, names, self._clock())
        if supply == self._supply:
            return False
        self._supply = supply
        if self._changed_at is None:
            self._changed_at = self._clock()
        return True

    async def reconcile(self) -> Result:
        """Decide and write, as often as the pool's pace allows. Raises ApiError."""
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
        """Counted once, however often the pool changes meanwhile."""
        if not self._is_put_off:
            CHANGES_HELD_BACK.labels("rate").inc()
        self._is_put_off = True

    def _steady(self, supply: Supply, now: float) -> tuple[Supply, float | None]:
        """Without what flaps; and after how many seconds some of that has stayed long enough."""
        held = self._comings.held(now)
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
