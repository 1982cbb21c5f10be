"""The API server's pods that were refused and fit by now: kube-scheduler is made to try them again.

It tries a pod that an extender refused again when something changes that it looks at, else after
five minutes. A write to the pod's own status is such a change, of that pod alone: the condition
says that it fits, and goes away again with the others of pods that do not wait at the gate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import NoReturn

from kube.api import ApiError
from scheduler_plugin.apiserver_gate_writes import WRITE_SECONDS, FencedError, GateWrites
from scheduler_plugin.gate_decisions import fits_condition
from scheduler_plugin.names import PodUid
from scheduler_plugin.pods import PodView
from scheduler_plugin.refusals import Refusals
from scheduler_plugin.verdicts import Admitted, judge

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.1
PACE_SECONDS = 0.05
"""How long it rests after each write: where there is room for one, many may fit."""

FAILED_SECONDS = 1.0
"""How long it rests after a write that failed: others may fail as well."""


class RetryWriter:
    """Judges refused pods again while `run` runs, and tells of those that fit."""

    def __init__(
        self, writes: GateWrites, refusals: Refusals, clock: Callable[[], datetime]
    ) -> None:
        self._writes = writes
        self._refusals = refusals
        self._clock = clock
        self._world = writes.cluster.world

    async def run(self) -> NoReturn:
        """Look until cancelled, while the Lease is ours."""
        while True:
            if not self._writes.fence.why_not(WRITE_SECONDS):
                for uid in self._refusals.due(self._clock()):
                    await self._look(uid)
            await asyncio.sleep(TICK_SECONDS)

    async def _look(self, uid: PodUid) -> None:
        """Tell a pod that fits so, once: one that is refused again is looked at again."""
        try:
            if pod := self._fitting(uid):
                # It may be tried and refused anew before the answer is there.
                self._refusals.forget(uid)
                await self._writes.write_condition(fits_condition(pod, self._clock()))
                logger.info("to be tried again pod=%s/%s", pod.namespace, pod.name)
                await asyncio.sleep(PACE_SECONDS)
        except Exception as error:  # An odd object must not end the process.
            bug = None if isinstance(error, (ApiError, FencedError)) else error
            logger.warning("not told to be tried again uid=%s: %s", uid, error, exc_info=bug)
            self._refusals.add(uid, self._clock())
            await asyncio.sleep(FAILED_SECONDS)

    def _fitting(self, uid: PodUid) -> PodView | None:
        """The pod if it would be admitted now, and can be tried."""
        if not self._world.may_be_bound(uid):
            self._refusals.forget(uid)
        pod = self._world.facts.pod(uid)
        if pod is None or not pod.may_be_bound:
            return None
        verdict = judge(pod, self._world.facts.claims_of(pod), self._world, self._clock())
        return pod if isinstance(verdict, Admitted) else None
