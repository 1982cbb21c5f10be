"""What people should look at: they are told by an Event, once for each.

Static pods, and those that something else than this scheduler bound, were never judged; what they
use is charged to no queue that they may not use. A claim's label counts whatever it says, and that
it was edited behind the policies is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from kube.api import CLAIMS, PODS, Event, ObjectReference
from scheduler_plugin.accounting.charges.ledger import why_unattributed
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.bindings import Fence
from scheduler_plugin.objects.names import PodUid

logger = logging.getLogger(__name__)

TICK_SECONDS = 5.0
WRITE_SECONDS = 5.0


class WarningTeller:
    """Looks for both while `run` runs, and tells of them while the Lease is ours."""

    def __init__(self, world: World, fence: Fence, record: Callable[[Event], None]) -> None:
        """`record` takes Events and returns at once."""
        self._world = world
        self._fence = fence
        self._record = record
        self._told: set[PodUid] = set()

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        while True:
            if not self._fence.why_not(WRITE_SECONDS):
                self.look()
            await asyncio.sleep(TICK_SECONDS)

    def look(self) -> None:
        """Tell of those that nobody was told of."""
        for edit in self._world.take_label_edits():
            logger.warning("label edited: %s", edit)
            found = ObjectReference.of(CLAIMS, "ResourceClaim", edit.claim)
            self._record(Event.warning(found, "LabelEdited", "Charge", str(edit)))
        facts = self._world.facts
        uids = facts.pods_unjudged()
        self._told &= set(uids)
        for uid in uids:
            pod = facts.pod(uid)
            why = why_unattributed(pod, facts) if pod is not None and uid not in self._told else ""
            if pod is not None and why:
                self._told.add(uid)
                logger.warning("charged to nobody pod=%s/%s: %s", pod.namespace, pod.name, why)
                found = ObjectReference.of(PODS, "Pod", pod)
                self._record(Event.warning(found, "Unattributed", "Charge", why))
