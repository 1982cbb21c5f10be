"""What a claim needs next, done on the API server, and told to people."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from binder import apiserver_events
from binder.apiserver_claims import CLAIMS, ClaimWriter
from binder.apiserver_evictions import Evictor
from kube.api import Event
from scheduler_plugin.api import (
    Attribution,
    ClaimCleared,
    EndedOwner,
    EvictForeign,
    OwnerLeftAt,
    PodToEvict,
    Step,
    Upkeep,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Steps:
    """Carries out steps, whatever was done twice is done once.

    Attributes:
        record: Takes Events and returns at once.
        clock: The time now.
    """

    claims: ClaimWriter
    evictor: Evictor
    upkeep: Upkeep
    record: Callable[[Event], None]
    clock: Callable[[], datetime]

    async def carry_out(self, step: Step) -> None:
        """Do it.

        Raises:
            ConflictError, NotFoundError: Somebody wrote or deleted the claim first.
            HeldBackError: Pods may not be evicted now.
            ApiError, FencedError: It may have happened or not.
        """
        match step:
            case EndedOwner():
                path = CLAIMS.at(step.name, step.namespace)
                await self.claims.remove_owner(path, step.uid, step.resource_version)
                logger.info("owner ended claim=%s/%s", step.namespace, step.name)
            case Attribution():
                await self.claims.write_owner(step.owner)
                self._tell(apiserver_events.attributed(step))
            case ClaimCleared():
                await self.claims.clear(step)
                self._tell(apiserver_events.cleared(step))
            case OwnerLeftAt():
                await self.claims.note_left(step)
                if step.sentence:
                    self._tell(apiserver_events.owner_left(step))
            case EvictForeign():
                await self._evict(step)

    async def _evict(self, step: EvictForeign) -> None:
        told: list[PodToEvict] = []

        def is_due(pod: PodToEvict) -> bool:
            """An owner's pod may have come, or the pod may be on its way out."""
            due = self.upkeep.eviction(step.uid, self.clock())
            return due is not None and pod in due.pods

        def evicted(pod: PodToEvict) -> None:
            if not told:
                self._tell(apiserver_events.foreign_evicted(step))
            told.append(pod)
            self._tell(apiserver_events.pod_evicted(pod, step))

        await self.evictor.evict(step, is_due, evicted)

    def _tell(self, event: Event) -> None:
        about = event.regarding
        logger.info(
            "%s %s=%s/%s: %s", event.reason, about.kind, about.namespace, about.name, event.note
        )
        self.record(event)
