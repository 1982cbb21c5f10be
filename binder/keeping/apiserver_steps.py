"""What a claim needs next, done on the API server, and told to people."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from binder import apiserver_events
from binder.bindings.apiserver_claims import ClaimWriter
from binder.evictions.apiserver_evictions import Evictor, HeldBackError
from kube.api import CLAIMS, ConflictError, Event
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
        """All or none of them, as far as that can be known; an owner's pod may come meanwhile."""
        try:
            await self.evictor.ask(step.pods)
        except HeldBackError as error:
            raise HeldBackError(f"None of them was evicted: {error}") from error
        if not self.upkeep.is_due(step, self.clock()):
            raise ConflictError("what was to be evicted changed")
        count = 0
        for pod in step.pods:
            if not self.upkeep.goes_on(step):
                return
            try:
                is_evicted = await self.evictor.evict(pod)
            except HeldBackError as error:
                raise HeldBackError(f"{count} of them were evicted: {error}") from error
            if is_evicted:
                self._tell_evicted(pod, step, is_first=count == 0)
                count += 1

    def _tell_evicted(self, pod: PodToEvict, step: EvictForeign, *, is_first: bool) -> None:
        if is_first:
            self._tell(apiserver_events.foreign_evicted(step))
        self._tell(apiserver_events.pod_evicted(pod, step))

    def _tell(self, event: Event) -> None:
        apiserver_events.tell(event, self.record)
