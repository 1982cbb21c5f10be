"""The API server's waiting pods: those that may go are let go, and the others told why they wait.

    GateKeeper ─who may go───────────► some at one time, in their order ─► pods, pods/status
    GateKeeper ─what has to be told─┐
    World ─conditions that are over─┴─► one write at a time, at a pace ──► pods/status

At the gate the gate is removed. Any other pod was refused when kube-scheduler asked about it, and
kube-scheduler tries it again when something changes that it looks at, else after five minutes. A
write to the pod's own status is such a change, of that pod alone: the condition says that it fits,
and goes away again with the others of pods that do not wait at the gate.

Either is tried for as long as its decision holds, and never afterwards: then others may have
got the room. What cannot be reached is tried again by whoever tries it; what is refused goes back
to the keeper, so that others have their turn.

Thousands of pods may wait, and nobody reads all their conditions: these are written slowly, and
behind those that go. Whoever wants to know of one pod at once asks for its place.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import NoReturn

from kube.api import (
    ApiError,
    Backoff,
    ConflictError,
    NotFoundError,
    ServerFaultError,
    UnauthorizedError,
    UnavailableError,
    naming,
)
from scheduler_plugin.accounting.world_changes import PodChanged, WorldChange
from scheduler_plugin.cluster.apiserver_gate_writes import (
    WRITE_SECONDS,
    GateStaysError,
    GateWrites,
)
from scheduler_plugin.objects.bindings import FencedError
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.away.resting_pods import (
    LONGEST_FOR_OTHERS_SECONDS,
    LONGEST_SECONDS,
)
from scheduler_plugin.waiting.decisions import (
    GateCondition,
    GateRemoval,
    LetGo,
    Retry,
    fits_condition,
    has_stale_condition,
)
from scheduler_plugin.waiting.gates import GateKeeper

logger = logging.getLogger(__name__)

PACE_SECONDS = 0.05
"""How long it rests after each write."""

CONDITION_BACKOFF = Backoff(first_seconds=0.5, cap_seconds=30.0)

AT_ONCE = 4
"""How many gates are removed at one time. With more, the API server removes gates and nothing else
for a while, and the first pod is bound after the last gate is removed."""

MOST_PENDING = 64
"""How many may wait before no more should be decided: a decision lapses while it waits."""

LET_GO_BACKOFF = Backoff(first_seconds=0.2, cap_seconds=10.0)


class GateRemovals:
    """Lets pods go while `run` runs."""

    def __init__(
        self,
        writes: GateWrites,
        keeper: GateKeeper,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        done: Callable[[], None],
    ) -> None:
        """`done` is called after each pod, whatever became of it."""
        self._writes = writes
        self._keeper = keeper
        self._clock = clock
        self._monotonic = monotonic
        self._done = done
        self._pending: dict[PodUid, LetGo] = {}
        self._more = asyncio.Event()
        self._under_way = 0
        self._refused_in_a_row = 0

    def add(self, decisions: Iterable[LetGo]) -> None:
        """Let these go, after those that wait for it already."""
        for decision in decisions:
            self._pending[decision.uid] = decision
            self._more.set()

    @property
    def has_room(self) -> bool:
        return len(self._pending) < MOST_PENDING

    def is_busy(self) -> bool:
        """Whether there are pods to be let go."""
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
            decision = self._pending.pop(next(iter(self._pending)))
            self._under_way += 1
            try:
                with naming(podUID=decision.uid):
                    await self._let_go(decision)
            finally:
                self._under_way -= 1
            self._done()

    async def _let_go(self, decision: LetGo) -> None:
        failures = 0
        while self._still_holds(decision):
            try:
                await self._write(decision)
            except (UnavailableError, UnauthorizedError, FencedError) as error:
                # Whether it is done or not, once more does no harm.
                failures += 1
                logger.warning("not let go yet %s: %s", _named(decision), error)
                await asyncio.sleep(max(_delay(failures), _asked_for(error)))
            except Exception as error:  # noqa: BLE001  An odd object must not end the process.
                await self._put_off(decision, error)
                return
            else:
                self._refused_in_a_row = 0
                logger.info("let go %s", _named(decision))
                return

    async def _write(self, decision: LetGo) -> None:
        match decision:
            case GateRemoval():
                await self._writes.remove_gate(decision)
            case Retry(uid=uid):
                await self._tell(uid)

    async def _tell(self, uid: PodUid) -> None:
        pod = self._writes.cluster.world.facts.pod(uid)
        if pod is None:
            return
        try:
            await self._writes.write_condition(fits_condition(pod, self._clock()))
        except (NotFoundError, ConflictError) as error:
            # The pod is gone, and the watch will say so.
            logger.debug("not told uid=%s: %s", uid, error)
            self._keeper.failed(uid, self._monotonic())

    def _still_holds(self, decision: LetGo) -> bool:
        """Whether the decision holds for as long as the write may take."""
        return self._keeper.is_going(decision.uid, self._monotonic() + WRITE_SECONDS)

    async def _put_off(self, decision: LetGo, error: Exception) -> None:
        """The pod rests, and others go; where all are refused, all the slower."""
        self._refused_in_a_row += 1
        is_servers = isinstance(error.__cause__ or error, ServerFaultError)
        longest = LONGEST_FOR_OTHERS_SECONDS if is_servers else LONGEST_SECONDS
        self._keeper.failed(decision.uid, self._monotonic(), longest)
        bug = None if isinstance(error, (ApiError, GateStaysError)) else error
        logger.warning("not let go %s: %s", _named(decision), error, exc_info=bug)
        await asyncio.sleep(_delay(self._refused_in_a_row))


class ConditionWriter:
    """Writes and removes conditions while `run` runs."""

    def __init__(
        self,
        writes: GateWrites,
        keeper: GateKeeper,
        must_wait: Callable[[], bool],
        written: Callable[[GateCondition], None] = lambda _: None,
    ) -> None:
        """Nothing is written yet.

        Args:
            writes: Writes pods.
            keeper: Knows what has to be told.
            must_wait: Whether others write who go first; then `ask` again.
            written: Called with each condition that says what a pod waits for, once it is stored.
        """
        self._writes = writes
        self._keeper = keeper
        self._must_wait = must_wait
        self._written = written
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
            await asyncio.sleep(
                PACE_SECONDS + CONDITION_BACKOFF.delay(self._failures, random.random)
            )

    async def _step(self) -> bool:
        """Write one; False where it has to be done again."""
        for uid in self._stale:
            del self._stale[uid]
            return await self._remove(uid)
        for condition in self._keeper.untold.take(1):
            return await self._tried(
                self._write(condition), condition.uid, self._keeper.untold.failed
            )
        return True

    async def _write(self, condition: GateCondition) -> None:
        await self._writes.write_condition(condition)
        self._written(condition)

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


def _named(decision: LetGo) -> str:
    return f"pod={decision.namespace}/{decision.name} queue={decision.queue}"


def _asked_for(error: Exception) -> float:
    return error.retry_after_seconds if isinstance(error, ApiError) else 0.0


def _delay(failures: int) -> float:
    return LET_GO_BACKOFF.delay(failures, random.random)
