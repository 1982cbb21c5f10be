"""What people should look at: they are told by an Event, once for each.

A claim says which queues use it for free, and which were turned away: who pays for it is on its
label, and who is refused reads it on his pod, but its owner looks at the claim.

Static pods, and those that something else than this scheduler bound, were never judged; what they
use is charged to no queue that they may not use. A claim's label counts whatever it says, and that
it was edited behind the policies is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from cachetools import LRUCache

from kube.api import CLAIMS, PODS, Event, ObjectReference
from scheduler_plugin.accounting.charges.ledger import why_unattributed
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import PodChanged, WorldChange
from scheduler_plugin.judging.verdicts import not_shared
from scheduler_plugin.objects.bindings import Fence
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName, Reason
from scheduler_plugin.objects.pods import PodView

logger = logging.getLogger(__name__)

TICK_SECONDS = 5.0
WRITE_SECONDS = 5.0

MOST_TOLD = 10_000
"""Of claims and queues that were told of each other; of one that is forgotten it is told again."""


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


class SharingTeller:
    """Tells on claims of the queues that share them, or may not, while the Lease is ours."""

    def __init__(self, world: World, fence: Fence, record: Callable[[Event], None]) -> None:
        """`record` takes Events and returns at once."""
        self._world = world
        self._fence = fence
        self._record = record
        self._told: LRUCache[tuple[ClaimUid, QueueName, bool], bool] = LRUCache(MOST_TOLD)

    def changed(self, change: WorldChange) -> None:
        """Take a change; fit to be subscribed to the world."""
        if not isinstance(change, PodChanged):
            return
        facts = self._world.facts
        pod = facts.pod(change.uid)
        if pod is None or pod.ended or not (queue := facts.queue_of(pod)):
            return
        for claim in facts.claims_of(pod):
            entry = self._world.ledger.claim(claim.uid)
            if entry is not None and entry.owner not in ("", queue):
                self._look(pod, queue, claim, entry.owner)

    def _look(self, pod: PodView, queue: QueueName, claim: ClaimView, owner: QueueName) -> None:
        """At a pod that uses what is another queue's, or would."""
        tree = self._world.facts.tree
        if not pod.is_bound and (queue not in tree or tree.shares_with(owner, queue)):
            return
        key = (claim.uid, queue, pod.is_bound)
        if key in self._told or self._fence.why_not(WRITE_SECONDS):
            return
        self._told[key] = True
        about = ObjectReference.of(CLAIMS, "ResourceClaim", claim)
        self._record(
            _shared(about, claim, pod, queue, owner)
            if pod.is_bound
            else _denied(about, claim, pod, queue, owner)
        )


def _shared(
    about: ObjectReference, claim: ClaimView, pod: PodView, queue: QueueName, owner: QueueName
) -> Event:
    note = f'{claim}, which queue "{owner}" pays for, is used by queue "{queue}", too: by {pod}.'
    return Event.normal(about, "ClaimShared", "Share", note)


def _denied(
    about: ObjectReference, claim: ClaimView, pod: PodView, queue: QueueName, owner: QueueName
) -> Event:
    note = f"{not_shared(claim, owner, queue)}: {pod} waits."
    return Event.warning(about, str(Reason.CLAIM_SHARING_DENIED), "Share", note)
