"""Events that warn users; each condition is reported once.

They report labels that were edited although policies forbid it (the edited label counts), pods that
are charged to no queue, and claims that pods of other queues use, or are refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from cachetools import TTLCache

from kube.events.api import Event, ObjectReference
from kube.kinds import CLAIMS, PODS
from kube.reconciling.api import After, Done, Reconciler, Result
from scheduler_plugin.accounting.api import PodChanged, World, WorldChange
from scheduler_plugin.cleanup.api import ForeignPods, SharedClaim, SharedClaims, UnattributedPods
from scheduler_plugin.objects.api import Fence
from scheduler_plugin.objects.names import Reason

logger = logging.getLogger(__name__)

LOOK = "look"
"""The only key: it checks everything."""

MOST_REMEMBERED = 10_000
"""How many claims with a recent Event are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningSettings:
    """When warning Events are recorded. All times are seconds.

    Attributes:
        write_seconds: How long the Lease must still be held for an Event to be recorded.
        look_seconds: The time between two checks for edited labels and unattributed pods.
        gather_seconds: How long the queues that share a claim are collected.
        pause_seconds: The time between the Events of two shared claims. Thousands may be shared
            within seconds: without a limit their Events were a tenth of all writes of binding.
        interval_seconds: The time between two Events of one claim. A sooner one would count as a
            repetition of the one before, and not be written (`kube.events.event_series`).
    """

    write_seconds: float = 5.0
    look_seconds: float = 5.0
    gather_seconds: float = 1.0
    pause_seconds: float = 0.1
    interval_seconds: float = 61.0


class WarningRecorder:
    """Records edited labels and unattributed pods while `run` runs and the Lease is held."""

    def __init__(
        self,
        world: World,
        fence: Fence,
        record: Callable[[Event], None],
        settings: WarningSettings = WarningSettings(),
    ) -> None:
        """`record` takes Events without blocking."""
        self._world = world
        self._record = record
        self._settings = settings
        self._unattributed = UnattributedPods(world)
        why_not = partial(fence.why_not, settings.write_seconds)
        self._queue: Reconciler[str] = Reconciler("warnings", self._reconcile, why_not=why_not)

    async def run(self) -> NoReturn:
        """Check until cancelled."""
        self._queue.add(LOOK)
        await self._queue.run()

    async def _reconcile(self, _: str) -> Result:
        self.look()
        return After(self._settings.look_seconds)

    def look(self) -> None:
        """Record what was not recorded before."""
        for edit in self._world.take_label_edits():
            logger.warning("label edited: %s", edit)
            about = ObjectReference.of(CLAIMS, "ResourceClaim", edit.claim)
            self._record(Event.warning(about, "LabelEdited", "Charge", str(edit)))
        for pod, why in self._unattributed.take_new():
            logger.warning("charged to no queue pod=%s/%s: %s", pod.namespace, pod.name, why)
            about = ObjectReference.of(PODS, "Pod", pod)
            self._record(Event.warning(about, "Unattributed", "Charge", why))


class SharingRecorder:
    """Records on claims which queues share them, or are refused, while the Lease is held.

    An Event names all queues that were added since the claim's last one.
    """

    def __init__(
        self,
        world: World,
        fence: Fence,
        record: Callable[[Event], None],
        settings: WarningSettings = WarningSettings(),
    ) -> None:
        """`record` takes Events without blocking."""
        self._record = record
        self._settings = settings
        self._claims = SharedClaims(world)
        # Until when no further Event about a claim is recorded.
        self._quiet_until: TTLCache[ForeignPods, float] = TTLCache(
            MOST_REMEMBERED, settings.interval_seconds, _now
        )
        self._fence = fence
        why_not = partial(fence.why_not, settings.write_seconds)
        self._queue: Reconciler[ForeignPods] = Reconciler(
            "sharing-events", self._reconcile, why_not=why_not
        )

    def changed(self, change: WorldChange) -> None:
        """Add the claims that a change concerns; subscribe this to the world."""
        # A Lease whose renewal is late is still held: what happens then is recorded later.
        if not isinstance(change, PodChanged) or self._fence.why_not(0.0):
            return
        for foreign_pods in self._claims.note(change.uid):
            seconds = self._quiet_until.get(foreign_pods, 0.0) - _now()
            self._queue.add_after(foreign_pods, max(seconds, self._settings.gather_seconds))

    async def run(self) -> NoReturn:
        """Record until cancelled."""
        await self._queue.run()

    async def _reconcile(self, foreign_pods: ForeignPods) -> Result:
        if (found := self._claims.take(foreign_pods)) is None:
            return Done()
        self._quiet_until[foreign_pods] = _now() + self._settings.interval_seconds
        self._record(_event(found))
        return Done(pause=self._settings.pause_seconds)


def _event(found: SharedClaim) -> Event:
    about = ObjectReference.of(CLAIMS, "ResourceClaim", found.claim)
    if found.are_bound:
        return Event.normal(about, "ClaimShared", "Share", found.note)
    return Event.warning(about, str(Reason.CLAIM_SHARING_DENIED), "Share", found.note)


def _now() -> float:
    return asyncio.get_running_loop().time()
