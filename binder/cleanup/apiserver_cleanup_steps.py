"""Carries out the steps of the cleanup of claims on the API server, and records Events."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from binder import apiserver_events
from binder.bindings.apiserver_claims import ClaimWriter
from binder.evictions.apiserver_evictions import Evictor, HeldBackError
from kube.calls.api import ConflictError
from kube.events.api import Event
from kube.kinds import CLAIMS
from scheduler_plugin.cleanup.api import (
    Attribution,
    ChargeNote,
    ClaimCleanup,
    ClaimCleared,
    EndedOwner,
    EvictForeign,
    OwnerExitTime,
    PodToEvict,
    Step,
)
from scheduler_plugin.objects.names import CHARGED_ANNOTATION, OWNER_LEFT_AT_ANNOTATION

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Steps:
    """Carries out steps. Each step is idempotent.

    Attributes:
        record: Takes Events without blocking.
        clock: Returns the current time.
    """

    claims: ClaimWriter
    evictor: Evictor
    cleanup: ClaimCleanup
    record: Callable[[Event], None]
    clock: Callable[[], datetime]

    async def carry_out(self, step: Step) -> None:
        """Carry out one step.

        Raises:
            ConflictError, NotFoundError: The claim has another version, or was deleted.
            HeldBackError: A disruption budget does not allow an eviction now.
            ApiError, FencedError: The step failed; a write may have happened.
        """
        match step:
            case EndedOwner():
                path = CLAIMS.at(step.name, step.namespace)
                await self.claims.remove_owner(path, step.uid, step.resource_version)
                logger.info("owner ended claim=%s/%s", step.namespace, step.name)
            case Attribution():
                await self.claims.write_owner(step.owner)
                self._record(apiserver_events.attributed(step))
            case ClaimCleared():
                await self.claims.clear(step, lambda: self.cleanup.is_stale(step, self.clock()))
                self._record(apiserver_events.cleared(step))
            case ChargeNote():
                await self.claims.annotate(step, CHARGED_ANNOTATION)
            case OwnerExitTime():
                await self.claims.annotate(step, OWNER_LEFT_AT_ANNOTATION)
                if step.sentence:
                    self._record(apiserver_events.owner_exited(step))
            case EvictForeign():
                await self._evict(step)

    async def _evict(self, step: EvictForeign) -> None:
        """Evict all or none, as far as budgets are known. A pod of the owner stops the eviction."""
        try:
            await self.evictor.dry_run(step.pods)
        except HeldBackError as error:
            raise HeldBackError(f"None of them was evicted: {error}") from error
        if not self.cleanup.is_due(step, self.clock()):
            raise ConflictError("the pods to evict changed")
        count = 0
        for pod in step.pods:
            if not self.cleanup.may_continue(step):
                return
            try:
                is_evicted = await self.evictor.evict(pod)
            except HeldBackError as error:
                raise HeldBackError(f"{count} of them were evicted: {error}") from error
            if is_evicted:
                self._record_evicted(pod, step, is_first=count == 0)
                count += 1

    def _record_evicted(self, pod: PodToEvict, step: EvictForeign, *, is_first: bool) -> None:
        if is_first:
            self._record(apiserver_events.foreign_evicted(step))
        self._record(apiserver_events.pod_evicted(pod, step))

    def _record(self, event: Event) -> None:
        apiserver_events.report(event, self.record)
