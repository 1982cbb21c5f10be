"""The API server's pods that may go: their gates are removed, some at one time, in their order.

A removal is tried for as long as its decision holds, and never afterwards: then others may have
got the room. What cannot be reached is tried again by whoever tries it; what is refused goes back
to the keeper, so that others have their turn.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NoReturn

from kube.api import ApiError, Backoff, UnavailableError
from scheduler_plugin.apiserver_gate_writes import (
    WRITE_SECONDS,
    FencedError,
    GateStaysError,
    GateWrites,
)
from scheduler_plugin.gate_decisions import GateRemoval
from scheduler_plugin.gates import GateKeeper
from scheduler_plugin.names import PodUid

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""How many gates are removed at one time. With more, the API server removes gates and nothing else
for a while, and the first pod is bound after the last gate is removed."""

MOST_PENDING = 64
"""How many may wait before no more should be decided: a decision lapses while it waits."""

BACKOFF = Backoff(first_seconds=0.2, cap_seconds=10.0)


class GateRemovals:
    """Removes gates while `run` runs."""

    def __init__(
        self,
        writes: GateWrites,
        keeper: GateKeeper,
        clock: Callable[[], datetime],
        done: Callable[[], None],
    ) -> None:
        """`done` is called after each removal, whatever became of it."""
        self._writes = writes
        self._keeper = keeper
        self._clock = clock
        self._done = done
        self._pending: dict[PodUid, GateRemoval] = {}
        self._more = asyncio.Event()
        self._under_way = 0
        self._refused_in_a_row = 0

    def add(self, removals: Iterable[GateRemoval]) -> None:
        """Remove these gates, after those that wait for it already."""
        for removal in removals:
            self._pending[removal.uid] = removal
            self._more.set()

    @property
    def has_room(self) -> bool:
        return len(self._pending) < MOST_PENDING

    def is_busy(self) -> bool:
        """Whether there are gates to be removed."""
        return bool(self._pending or self._under_way)

    def drop(self) -> None:
        """Give up what was not begun: nothing is assumed of those pods any more."""
        for uid in self._pending:
            self._writes.cluster.world.assumptions.forget(uid)
        self._pending.clear()

    async def run(self) -> None:
        """Remove until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(self._work())

    async def _work(self) -> NoReturn:
        while True:
            if not self._pending:
                self._more.clear()
                await self._more.wait()
                continue
            removal = self._pending.pop(next(iter(self._pending)))
            self._under_way += 1
            try:
                await self._remove(removal)
            finally:
                self._under_way -= 1
            self._done()

    async def _remove(self, removal: GateRemoval) -> None:
        failures = 0
        while self._still_holds(removal):
            try:
                await self._writes.remove_gate(removal)
            except (UnavailableError, FencedError) as error:
                # Whether it is removed or not, once more does no harm.
                failures += 1
                logger.warning("gate not removed yet %s: %s", _named(removal), error)
                await asyncio.sleep(max(_delay(failures), _asked_for(error)))
            except Exception as error:  # noqa: BLE001  An odd object must not end the process.
                await self._put_off(removal, error)
                return
            else:
                self._refused_in_a_row = 0
                logger.info("let go %s", _named(removal))
                return

    def _still_holds(self, removal: GateRemoval) -> bool:
        """Whether the decision holds for as long as the write may take."""
        at = self._clock() + timedelta(seconds=WRITE_SECONDS)
        return self._keeper.is_going(removal.uid, at)

    async def _put_off(self, removal: GateRemoval, error: Exception) -> None:
        """The pod rests, and others go; where all are refused, all the slower."""
        self._refused_in_a_row += 1
        self._keeper.removal_failed(removal.uid, self._clock())
        bug = None if isinstance(error, (ApiError, GateStaysError)) else error
        logger.warning("gate not removed %s: %s", _named(removal), error, exc_info=bug)
        await asyncio.sleep(_delay(self._refused_in_a_row))


def _named(removal: GateRemoval) -> str:
    return f"pod={removal.namespace}/{removal.name} queue={removal.queue}"


def _asked_for(error: Exception) -> float:
    return error.retry_after_seconds if isinstance(error, UnavailableError) else 0.0


def _delay(failures: int) -> float:
    return BACKOFF.delay(failures, random.random)
