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
import time
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeAlias

from cachetools import LRUCache

from kube.api import CLAIMS, PODS, Event, ObjectReference
from scheduler_plugin.accounting.charges.entries import why_unattributed
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import PodChanged, WorldChange
from scheduler_plugin.due import Due, Rests
from scheduler_plugin.judging.verdicts import not_shared
from scheduler_plugin.objects.bindings import Fence
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, ClaimUid, PodUid, QueueName, Reason
from scheduler_plugin.objects.pods import PodView

logger = logging.getLogger(__name__)

TICK_SECONDS = 5.0
WRITE_SECONDS = 5.0

MOST_TOLD = 10_000
"""Of claims and queues that were told of each other; of one that is forgotten it is told again."""

GATHER_SECONDS = 1.0
"""How often it is told who shares, and for how long that is gathered."""

AT_ONCE = 10
"""Of how many claims then. Thousands may be shared within seconds, and nobody reads as many Events
so soon; told at once they were a tenth of all writes of binding."""

REST_SECONDS = 61.0
"""How long nothing more is told of a claim: sooner, the next sentence would count as a repetition
of this one, and not be written (`kube.events.event_series`)."""


_About: TypeAlias = tuple[ClaimUid, bool]
"""A claim, and whether its guests are bound or waiting."""


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
    """Tells on claims of the queues that share them, or may not, while the Lease is ours.

    One Event of a claim names all of them that came since the last one.
    """

    def __init__(
        self,
        world: World,
        fence: Fence,
        record: Callable[[Event], None],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  As in any shell.
    ) -> None:
        """`record` takes Events and returns at once."""
        self._world = world
        self._fence = fence
        self._record = record
        self._monotonic = monotonic
        self._told: LRUCache[tuple[_About, QueueName], bool] = LRUCache(MOST_TOLD)
        self._guests: dict[_About, dict[QueueName, PodUid]] = {}
        self._due: Due[_About] = Due()
        self._rests: Rests[_About] = Rests()

    def changed(self, change: WorldChange) -> None:
        """Take a change; fit to be subscribed to the world."""
        pod = self._world.facts.pod(change.uid) if isinstance(change, PodChanged) else None
        if pod is None or pod.ended or not (queue := self._world.facts.queue_of(pod)):
            return
        for claim in self._world.facts.claims_of(pod):
            about = (claim.uid, pod.is_bound)
            if (about, queue) not in self._told and self._owner(pod, queue, claim):
                self._ask(about, queue, pod)

    def _owner(self, pod: PodView, queue: QueueName, claim: ClaimView) -> QueueName:
        """The other queue whose claim a pod uses, or would and may not; "" for none."""
        entry, tree = self._world.ledger.claim(claim.uid), self._world.facts.tree
        if entry is None or entry.owner == queue:
            return NO_QUEUE
        if not pod.is_bound and (queue not in tree or tree.shares_with(entry.owner, queue)):
            return NO_QUEUE
        return entry.owner

    def _ask(self, about: _About, queue: QueueName, pod: PodView) -> None:
        if self._fence.why_not(WRITE_SECONDS):
            return
        self._told[about, queue] = True
        self._guests.setdefault(about, {})[queue] = pod.uid
        if about not in self._due:
            now = self._monotonic()
            self._due.set(about, self._rests.until(about, now) or now)

    async def run(self) -> NoReturn:
        """Tell until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(GATHER_SECONDS)

    def look(self) -> None:
        """Tell of the claims that have waited longest."""
        now = self._monotonic()
        for _ in range(AT_ONCE):
            about = self._due.pop(now)
            if about is not None:
                self._tell(about, self._guests.pop(about), now)

    def _tell(self, about: _About, guests: Mapping[QueueName, PodUid], now: float) -> None:
        uid, is_bound = about
        claim = self._world.facts.claim(uid)
        if claim is None:
            return
        sentences = []
        for queue, pod_uid in guests.items():
            pod = self._world.facts.pod(pod_uid)
            is_so = pod is not None and not pod.ended and pod.is_bound == is_bound
            if pod is not None and is_so and (owner := self._owner(pod, queue, claim)):
                sentences.append(_sentence(claim, pod, queue, owner))
            else:
                self._told.pop((about, queue), None)  # The queue's next pod is told of.
        if sentences:
            self._rests.again(about, now, lambda _: REST_SECONDS)
            self._record(_event(claim, is_bound=is_bound, note=" ".join(sentences)))


def _sentence(claim: ClaimView, pod: PodView, queue: QueueName, owner: QueueName) -> str:
    if not pod.is_bound:
        return f"{not_shared(claim, owner, queue)}: {pod} waits."
    return f'{claim}, which queue "{owner}" pays for, is used by queue "{queue}", too: by {pod}.'


def _event(claim: ClaimView, *, is_bound: bool, note: str) -> Event:
    about = ObjectReference.of(CLAIMS, "ResourceClaim", claim)
    if is_bound:
        return Event.normal(about, "ClaimShared", "Share", note)
    return Event.warning(about, str(Reason.CLAIM_SHARING_DENIED), "Share", note)
