"""Which queues use a claim for free, and which may not use it: each is news once.

Who pays for a claim is on its label, and a refused pod says why it waits. But the owner of the
claim looks at the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cachetools import LRUCache

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.rules.claims import not_shared
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.pods import PodView

MOST_REPORTED = 10_000
"""Pairs of a claim and a queue that are remembered; a forgotten one is news again."""


@dataclass(frozen=True, slots=True)
class Guests:
    """The pods of other queues that use a claim, or those that wait for it in vain."""

    claim: ClaimUid
    are_bound: bool


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """What is to be reported on a claim.

    Attributes:
        are_bound: Whether the pods use it; else they may not.
        note: A sentence for each queue.
    """

    claim: ClaimView
    are_bound: bool
    note: str


class SharedClaims:
    """What was reported of the claims of one world, and what is to be."""

    def __init__(self, world: WorldView) -> None:
        self._world = world
        self._reported: LRUCache[tuple[Guests, QueueName], bool] = LRUCache(MOST_REPORTED)
        self._news: dict[Guests, dict[QueueName, PodUid]] = {}

    def note(self, uid: PodUid) -> tuple[Guests, ...]:
        """Take a changed pod; returns what there is news of."""
        pod = self._world.facts.pod(uid)
        if pod is None or pod.ended or not (queue := self._world.facts.queue_of(pod)):
            return ()
        news = []
        for claim in self._world.facts.claims_of(pod):
            guests = Guests(claim.uid, pod.is_bound)
            if (guests, queue) not in self._reported and self._owner(pod, queue, claim):
                self._reported[guests, queue] = True
                self._news.setdefault(guests, {})[queue] = uid
                news.append(guests)
        return tuple(news)

    def take(self, guests: Guests) -> SharedClaim | None:
        """What is still true of the news; None for nothing."""
        pods = self._news.pop(guests, {})
        claim = self._world.facts.claim(guests.claim)
        if claim is None:
            return None
        note = " ".join(self._sentences(guests, claim, pods))
        return SharedClaim(claim, guests.are_bound, note) if note else None

    def _sentences(
        self, guests: Guests, claim: ClaimView, pods: Mapping[QueueName, PodUid]
    ) -> list[str]:
        sentences = []
        for queue, uid in pods.items():
            pod = self._world.facts.pod(uid)
            is_so = pod is not None and not pod.ended and pod.is_bound == guests.are_bound
            if pod is not None and is_so and (owner := self._owner(pod, queue, claim)):
                sentences.append(_sentence(claim, pod, queue, owner))
            else:
                self._reported.pop((guests, queue), None)  # The queue's next pod is news.
        return sentences

    def _owner(self, pod: PodView, queue: QueueName, claim: ClaimView) -> QueueName:
        """The other queue whose claim a pod uses, or would and may not; "" for none."""
        entry, tree = self._world.ledger.claim(claim.uid), self._world.facts.tree
        if entry is None or entry.owner == queue:
            return NO_QUEUE
        if not pod.is_bound and (queue not in tree or tree.shares_with(entry.owner, queue)):
            return NO_QUEUE
        return entry.owner


def _sentence(claim: ClaimView, pod: PodView, queue: QueueName, owner: QueueName) -> str:
    if not pod.is_bound:
        return f"{not_shared(claim, owner, queue)}: {pod} waits."
    return f'{claim}, which queue "{owner}" pays for, is used by queue "{queue}", too: by {pod}.'
