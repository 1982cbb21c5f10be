"""Pods that may go are let go on the API server, some at one time, in their order.

At the gate, the gate is removed. Any other pod was refused when kube-scheduler asked about it, and
kube-scheduler tries it again when something changes that it looks at, else after five minutes. A
write to the pod's own status is such a change, of that pod alone: the condition says that it fits,
and goes away again with the others of pods that do not wait at the gate.

Either is tried for as long as its decision holds, and never afterwards: then another pod may have
got the room. A write that is refused goes back to the keeper, so that other pods have their turn.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import NoReturn

from binder.gates.apiserver_gate_writes import GateStaysError, GateWrites
from kube.api import (
    ApiError,
    Backoff,
    ConflictError,
    Done,
    Failed,
    NotFoundError,
    Reconciler,
    Result,
    ServerFaultError,
    UnauthorizedError,
    UnavailableError,
    failed_call,
    naming,
)
from scheduler_plugin.api import (
    FencedError,
    GateKeeper,
    GateRemoval,
    LetGo,
    PodUid,
    Retry,
    fits_condition,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalSettings:
    """How pods are let go.

    Attributes:
        workers: How many gates are removed at one time. With more, the API server removes gates
            and nothing else for a while, and the first pod is bound after the last gate is gone.
        most_pending: How many pods may be let go before no more should be decided: a decision
            lapses while it waits.
        backoff: After writes without an answer, and after writes that were refused in a row.
    """

    workers: int = 4
    most_pending: int = 64
    backoff: Backoff = Backoff(first_seconds=0.2, cap_seconds=10.0)


@dataclass(eq=False)
class GateRemovals:
    """Lets pods go while `run` runs.

    Attributes:
        writes: Writes pods.
        keeper: Decided about them; takes back those that could not be let go.
        clock: The time now.
        monotonic: The seconds of a clock that is never set.
        done: Called after each pod, whatever became of it.
    """

    writes: GateWrites
    keeper: GateKeeper
    _: KW_ONLY
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    done: Callable[[], None]
    settings: RemovalSettings = RemovalSettings()

    def __post_init__(self) -> None:
        self._decisions: dict[PodUid, LetGo] = {}
        # Pods with a write that began: it may have arrived.
        self._begun: set[PodUid] = set()
        self._refused_in_a_row = 0
        self._queue: Reconciler[PodUid] = Reconciler(
            "gate-removals",
            self._reconcile,
            workers=self.settings.workers,
            why_not=self.writes.why_not,
            backoff=self.settings.backoff,
        )

    def add(self, decisions: Iterable[LetGo]) -> None:
        """Let these go, after those that wait for it already."""
        for decision in decisions:
            self._decisions[decision.uid] = decision
            self._queue.add(decision.uid)

    @property
    def has_room(self) -> bool:
        return len(self._decisions) < self.settings.most_pending

    def is_busy(self) -> bool:
        """Whether there are pods to be let go."""
        return bool(self._decisions)

    def drop(self) -> None:
        """Give up what was not begun: nothing is assumed of those pods any more."""
        for uid in self._decisions.keys() - self._begun:
            self.writes.cluster.world.assumptions.forget(uid)
        self._decisions.clear()

    async def run(self) -> NoReturn:
        """Let pods go until cancelled."""
        await self._queue.run()

    async def _reconcile(self, uid: PodUid) -> Result:
        decision = self._decisions.get(uid)
        if decision is None:
            return Done()
        with naming(podUID=uid):
            result = await self._let_go(decision) if self._still_holds(decision) else Done()
        if isinstance(result, Failed):
            return result
        self._begun.discard(uid)
        if self._decisions.get(uid) is decision:
            del self._decisions[uid]
        self.done()
        return result

    async def _let_go(self, decision: LetGo) -> Result:
        self._begun.add(decision.uid)
        try:
            await self._write(decision)
        except (UnavailableError, UnauthorizedError) as error:
            # Whether it is done or not, once more does no harm.
            return failed_call(error)
        except FencedError as error:
            return Failed(error)
        except Exception as error:  # noqa: BLE001  An odd object must not end the process.
            return self._put_off(decision, error)
        self._refused_in_a_row = 0
        logger.info("let go %s", _named(decision))
        return Done()

    async def _write(self, decision: LetGo) -> None:
        match decision:
            case GateRemoval():
                await self.writes.remove_gate(decision)
            case Retry(uid=uid):
                await self._tell(uid)

    async def _tell(self, uid: PodUid) -> None:
        pod = self.writes.cluster.world.facts.pod(uid)
        if pod is None:
            return
        try:
            await self.writes.write_condition(fits_condition(pod, self.clock()))
        except (NotFoundError, ConflictError) as error:
            # The pod is gone, and the watch will say so.
            logger.debug("not told uid=%s: %s", uid, error)
            self.keeper.failed(uid, self.monotonic())

    def _still_holds(self, decision: LetGo) -> bool:
        """Whether the decision holds for as long as the write may take."""
        moment = self.monotonic() + self.writes.write_seconds
        return self.keeper.is_going(decision.uid, moment)

    def _put_off(self, decision: LetGo, error: Exception) -> Result:
        """The pod rests, and others go; where all are refused, all the slower."""
        self._refused_in_a_row += 1
        is_servers = isinstance(error.__cause__ or error, ServerFaultError)
        self.keeper.failed(decision.uid, self.monotonic(), is_servers=is_servers)
        bug = None if isinstance(error, (ApiError, GateStaysError)) else error
        logger.warning("not let go %s: %s", _named(decision), error, exc_info=bug)
        return Done(pause=self.settings.backoff.delay(self._refused_in_a_row, random.random))


def _named(decision: LetGo) -> str:
    return f"pod={decision.namespace}/{decision.name} queue={decision.queue}"
