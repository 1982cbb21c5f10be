"""Writes admissions to the API server, some concurrently, in order.

For a pod at the gate, the gate is removed. Any other pod was refused in kube-scheduler's last
attempt. kube-scheduler tries it again after an event that it watches, or after five minutes. A
write to the pod's status is such an event, for that pod alone: a condition says that it fits. It
is removed later, with the other stale conditions.

A write is retried while the pod stays assumed, and never afterwards: another pod may have the room
by then. After a refused write the keeper takes the pod back, so that other pods are admitted.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import NoReturn

from binder.gates.apiserver_gate_writes import GateStaysError, GateWrites
from kube.backoff import Backoff
from kube.calls.api import (
    ApiError,
    ConflictError,
    NotFoundError,
    ServerFaultError,
    UnauthorizedError,
    UnavailableError,
)
from kube.processes.api import log_context
from kube.reconciling.api import Done, Failed, Reconciler, Result, failed_call
from scheduler_plugin.objects.api import FencedError
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.api import Admission, GateKeeper, GateRemoval, Retry, fits_condition

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalSettings:
    """The pace of admissions.

    Attributes:
        workers: The number of concurrent writes. With more, the API server would remove gates and
            do nothing else for a while, and the first pod would be bound after the last removal.
        most_pending: The largest number of decisions that wait for a write: they may lapse.
        backoff: The back-off after writes without an answer, and after refused writes in a row.
    """

    workers: int = 4
    most_pending: int = 64
    backoff: Backoff = Backoff(first_seconds=0.2, cap_seconds=10.0)


@dataclass(eq=False)
class GateRemovals:
    """Writes admissions while `run` runs.

    Attributes:
        writes: Writes pods.
        keeper: Made the decisions; takes back pods whose write failed.
        clock: The wall-clock time.
        monotonic: The monotonic clock, in seconds.
        done: Called after each pod, whatever the result.
    """

    writes: GateWrites
    keeper: GateKeeper
    _: KW_ONLY
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    done: Callable[[], None]
    settings: RemovalSettings = RemovalSettings()

    def __post_init__(self) -> None:
        self._decisions: dict[PodUid, Admission] = {}
        # Pods with a write in flight: it may have been stored.
        self._begun: set[PodUid] = set()
        self._refused_in_a_row = 0
        self._queue: Reconciler[PodUid] = Reconciler(
            "gate-removals",
            self._reconcile,
            workers=self.settings.workers,
            why_not=self.writes.why_not,
            backoff=self.settings.backoff,
        )

    def add(self, decisions: Iterable[Admission]) -> None:
        """Write these admissions, after those that are here already."""
        for decision in decisions:
            self._decisions[decision.uid] = decision
            self._queue.add(decision.uid)

    @property
    def has_room(self) -> bool:
        return len(self._decisions) < self.settings.most_pending

    def is_busy(self) -> bool:
        """Whether admissions wait for their write."""
        return bool(self._decisions)

    def drop(self) -> None:
        """Drop the decisions without a write in flight, and forget their pods."""
        for uid in self._decisions.keys() - self._begun:
            self.writes.cluster.world.assumptions.forget(uid)
        self._decisions.clear()

    async def run(self) -> NoReturn:
        """Write admissions until cancelled."""
        await self._queue.run()

    async def _reconcile(self, uid: PodUid) -> Result:
        decision = self._decisions.get(uid)
        if decision is None:
            return Done()
        with log_context(podUID=uid):
            result = await self._admit(decision) if self._still_holds(decision) else Done()
        if isinstance(result, Failed):
            return result
        self._begun.discard(uid)
        if self._decisions.get(uid) is decision:
            del self._decisions[uid]
        self.done()
        return result

    async def _admit(self, decision: Admission) -> Result:
        was_begun = decision.uid in self._begun
        self._begun.add(decision.uid)
        try:
            await self._write(decision)
        except (UnavailableError, UnauthorizedError) as error:
            # It is not known whether the write was stored; a second one does no harm.
            if not (was_begun or error.may_have_happened):
                self._begun.discard(decision.uid)
            return failed_call(error)
        except FencedError as error:
            if not was_begun:
                self._begun.discard(decision.uid)
            return Failed(error)
        except Exception as error:  # noqa: BLE001  One object must not stop the process.
            return self._put_off(decision, error)
        self._refused_in_a_row = 0
        logger.info("admitted %s", _named(decision))
        return Done()

    async def _write(self, decision: Admission) -> None:
        match decision:
            case GateRemoval():
                await self.writes.remove_gate(decision)
            case Retry(uid=uid):
                await self._write_fits(uid)

    async def _write_fits(self, uid: PodUid) -> None:
        pod = self.writes.cluster.world.facts.pod(uid)
        if pod is None:
            return
        try:
            await self.writes.write_condition(fits_condition(pod, self.clock()))
        except (NotFoundError, ConflictError) as error:
            # The pod is gone; the watch will report it.
            logger.debug("condition not written, pod is gone uid=%s: %s", uid, error)
            self.keeper.failed(uid, self.monotonic())

    def _still_holds(self, decision: Admission) -> bool:
        """Whether the pod stays assumed for as long as the write may take."""
        moment = self.monotonic() + self.writes.write_seconds
        return self.keeper.stays_assumed(decision.uid, moment)

    def _put_off(self, decision: Admission, error: Exception) -> Result:
        """Back off the pod. After refused writes in a row, pause all writes as well."""
        self._refused_in_a_row += 1
        is_servers = isinstance(error.__cause__ or error, ServerFaultError)
        self.keeper.failed(decision.uid, self.monotonic(), is_servers=is_servers)
        bug = None if isinstance(error, (ApiError, GateStaysError)) else error
        logger.warning("admission not written %s: %s", _named(decision), error, exc_info=bug)
        return Done(pause=self.settings.backoff.delay(self._refused_in_a_row, random.random))


def _named(decision: Admission) -> str:
    return f"pod={decision.namespace}/{decision.name} queue={decision.queue}"
