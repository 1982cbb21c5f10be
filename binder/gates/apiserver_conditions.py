"""Writes the condition that says why a pod waits, and removes it from pods that do not wait.

    GateKeeper ─conditions to write─► key WRITE ──┐
    World ─────────stale conditions─► key REMOVE ─┴─► one write at a time, with pauses ► pods/status

Thousands of pods may wait, and no person reads all their conditions: they are written slowly, and
after the admissions. A query for one pod's position in its queue is answered at once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import NoReturn

from binder.gates.apiserver_gate_writes import GateWrites
from kube.backoff import Backoff
from kube.calls.api import ApiError, ConflictError, NotFoundError
from kube.reconciling.api import Done, Failed, Reconciler, Result, failed_call
from scheduler_plugin.accounting.api import PodChanged, WorldChange
from scheduler_plugin.objects.api import FencedError
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.api import GateCondition, GateKeeper, has_stale_condition

logger = logging.getLogger(__name__)

WRITE, REMOVE = "write", "remove"
"""The keys, one for each kind of write: the next pod of each is known.

A pod that fails is written again after the others of its kind, which wait for the back-off of the
key. It delays no other kind.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSettings:
    """The pace of conditions, in seconds.

    Attributes:
        pace_seconds: The pause after each write.
        backoff: The back-off after failed writes in a row.
    """

    pace_seconds: float = 0.05
    backoff: Backoff = Backoff(first_seconds=0.5, cap_seconds=30.0, patient=True)


@dataclass(eq=False)
class ConditionWriter:
    """Writes and removes conditions while `run` runs.

    Attributes:
        writes: Writes pods.
        keeper: Knows the conditions to write.
        must_wait: Whether other writes go first; call `enqueue` when they are done.
        written: Called with each written condition that says what a pod waits for.
    """

    writes: GateWrites
    keeper: GateKeeper
    _: KW_ONLY
    must_wait: Callable[[], bool]
    written: Callable[[GateCondition], None] = lambda _: None
    settings: ConditionSettings = ConditionSettings()

    def __post_init__(self) -> None:
        self._world = self.writes.cluster.world
        self._stale: dict[PodUid, None] = {}
        self._queue: Reconciler[str] = Reconciler(
            "gate-conditions",
            self._reconcile,
            why_not=self.writes.why_not,
            backoff=self.settings.backoff,
        )
        for pod in self._world.facts.pods():
            self._look_at(pod.uid)

    def changed(self, change: WorldChange) -> None:
        """The world took a change, and the keeper noted it."""
        if isinstance(change, PodChanged):
            self._look_at(change.uid)

    def _look_at(self, uid: PodUid) -> None:
        pod = self._world.facts.pod(uid)
        if pod is not None and has_stale_condition(pod):
            self._stale[uid] = None
            self.enqueue()
        else:
            self._stale.pop(uid, None)

    def enqueue(self) -> None:
        """Continue: the keeper may have conditions to write, or the first writes are done."""
        for key in (REMOVE, WRITE):
            if self._has_work(key):
                self._queue.add(key)

    def _has_work(self, key: str) -> bool:
        some = self._stale if key == REMOVE else self.keeper.pending_conditions
        return bool(some) and not self.must_wait()

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        await self._queue.run()

    async def _reconcile(self, key: str) -> Result:
        if not self._has_work(key):
            return Done()
        self._queue.add(key)  # There may be more.
        return await (self._remove_next() if key == REMOVE else self._write_next())

    async def _remove_next(self) -> Result:
        uid = next(iter(self._stale))
        del self._stale[uid]
        if (pod := self._world.facts.pod(uid)) is None:
            return Done()
        return await self._tried(self.writes.remove_condition(pod), uid, self._look_at)

    async def _write_next(self) -> Result:
        for condition in self.keeper.pending_conditions.take(1):
            failed = self.keeper.pending_conditions.failed
            return await self._tried(self._write(condition), condition.uid, failed)
        return Done(pause=self.settings.pace_seconds)

    async def _write(self, condition: GateCondition) -> None:
        await self.writes.write_condition(condition)
        self.written(condition)

    async def _tried(
        self, write: Awaitable[None], uid: PodUid, again: Callable[[PodUid], None]
    ) -> Result:
        try:
            await write
        except (NotFoundError, ConflictError) as error:
            # The pod is gone; the watch will report it.
            logger.debug("condition not written, pod is gone uid=%s: %s", uid, error)
        except Exception as error:  # One object must not stop the process.
            bug = None if isinstance(error, (ApiError, FencedError)) else error
            logger.warning("condition not written uid=%s error=%s", uid, error, exc_info=bug)
            again(uid)
            return failed_call(error) if isinstance(error, ApiError) else Failed(error)
        return Done(pause=self.settings.pace_seconds)
