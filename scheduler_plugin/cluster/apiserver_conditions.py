"""The API server's pods: what each waits for, slowly and behind the removals of gates.

    GateKeeper ─what has to be told─┐
    World ─conditions that are over─┴─► one write at a time, at a pace ─► pods/status

Thousands of pods may wait, and nobody reads all their conditions. Whoever wants to know of one pod
at once asks for its place.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import NoReturn

from kube.api import ApiError, Backoff, ConflictError, NotFoundError
from scheduler_plugin.accounting.world_changes import PodChanged, WorldChange
from scheduler_plugin.cluster.apiserver_gate_writes import FencedError, GateWrites
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.decisions import has_stale_condition
from scheduler_plugin.waiting.gates import GateKeeper

logger = logging.getLogger(__name__)

PACE_SECONDS = 0.05
"""How long it rests after each write."""

BACKOFF = Backoff(first_seconds=0.5, cap_seconds=30.0)


class ConditionWriter:
    """Writes and removes conditions while `run` runs."""

    def __init__(
        self,
        writes: GateWrites,
        keeper: GateKeeper,
        must_wait: Callable[[], bool],
    ) -> None:
        """`must_wait` tells whether others write who go first; then `ask` again."""
        self._writes = writes
        self._keeper = keeper
        self._must_wait = must_wait
        self._world = writes.cluster.world
        self._stale: dict[PodUid, None] = {}
        self._asked = asyncio.Event()
        self._failures = 0
        for pod in self._world.facts.pods():
            self._look_at(pod.uid)

    def changed(self, change: WorldChange) -> None:
        """The world took a change, and the keeper heard of it."""
        if isinstance(change, PodChanged):
            self._look_at(change.uid)

    def _look_at(self, uid: PodUid) -> None:
        pod = self._world.facts.pod(uid)
        if pod is not None and has_stale_condition(pod):
            self._stale[uid] = None
            self._asked.set()
        else:
            self._stale.pop(uid, None)

    def ask(self) -> None:
        """The keeper may have something to tell, or who went first is done."""
        self._asked.set()

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        while True:
            await self._asked.wait()
            if self._must_wait() or not (self._stale or self._keeper.untold):
                self._asked.clear()
                continue
            failed = not await self._step()
            self._failures = self._failures + 1 if failed else 0
            await asyncio.sleep(PACE_SECONDS + BACKOFF.delay(self._failures, random.random))

    async def _step(self) -> bool:
        """Write one; False where it has to be done again."""
        for uid in self._stale:
            del self._stale[uid]
            return await self._remove(uid)
        for condition in self._keeper.untold.take(1):
            write = self._writes.write_condition(condition)
            return await self._tried(write, condition.uid, self._keeper.untold.failed)
        return True

    async def _remove(self, uid: PodUid) -> bool:
        pod = self._world.facts.pod(uid)
        if pod is None:
            return True
        return await self._tried(self._writes.remove_condition(pod), uid, self._look_at)

    async def _tried(
        self, write: Awaitable[None], uid: PodUid, again: Callable[[PodUid], None]
    ) -> bool:
        try:
            await write
        except (NotFoundError, ConflictError) as error:
            # The pod is gone, and the watch will say so.
            logger.debug("no condition uid=%s: %s", uid, error)
        except Exception as error:  # An odd object must not end the process.
            bug = None if isinstance(error, (ApiError, FencedError)) else error
            logger.warning("condition not written uid=%s error=%s", uid, error, exc_info=bug)
            again(uid)
            return False
        return True
