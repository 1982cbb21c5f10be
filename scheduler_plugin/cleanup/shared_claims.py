"""Which queues use a claim that another queue pays for, or are refused: each is reported once.

A claim's label names the queue that pays, and a refused pod's condition says why it waits. The
owner of the claim looks at the claim, so both are reported there as well.
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
"""Remembered pairs of a claim and a queue; a forgotten pair is reported again."""


@dataclass(frozen=True, slots=True)
class ForeignPods:
    """The pods of other queues that use a claim, or that are refused its use."""

    claim: ClaimUid
    are_bound: bool


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """The report about a claim.

    Attributes:
        are_bound: Whether the pods use the claim; else they are refused.
        note: One sentence for each queue.
    """

    claim: ClaimView
    are_bound: bool
    note: str


class SharedClaims:
    """The queues that were reported for claims, and those that are to be."""

    def __init__(self, world: WorldView) -> None:
        self._world = world
        self._reported: LRUCache[tuple[ForeignPods, QueueName], bool] = LRUCache(MOST_REPORTED)
        self._news: dict[ForeignPods, dict[QueueName, PodUid]] = {}

    def note(self, uid: PodUid) -> tuple[ForeignPods, ...]:
        """Take a changed pod; returns the keys for which there is a new report."""
        pod = self._world.facts.pod(uid)
        if pod is None or pod.ended or not (queue := self._world.facts.queue_of(pod)):
            return ()
        news = []
        for claim in self._world.facts.claims_of(pod):
            foreign_pods = ForeignPods(claim.uid, pod.is_bound)
            if (foreign_pods, queue) not in self._reported and self._owner(pod, queue, claim):
                self._reported[foreign_pods, queue] = True
                self._news.setdefault(foreign_pods, {})[queue] = uid
                news.append(foreign_pods)
        return tuple(news)

    def take(self, foreign_pods: ForeignPods) -> SharedClaim | None:
        """The report, without what is no longer true; None if nothing is."""
        pods = self._news.pop(foreign_pods, {})
        claim = self._world.facts.claim(foreign_pods.claim)
        if claim is None:
            return None
        note = " ".join(self._sentences(foreign_pods, claim, pods))
        return SharedClaim(claim, foreign_pods.are_bound, note) if note else None

    def _sentences(
        self, foreign_pods: ForeignPods, claim: ClaimView, pods: Mapping[QueueName, PodUid]
    ) -> list[str]:
        sentences = []
        for queue, uid in pods.items():
            pod = self._world.facts.pod(uid)
            is_so = pod is not None and not pod.ended and pod.is_bound == foreign_pods.are_bound
            if pod is not None and is_so and (owner := self._owner(pod, queue, claim)):
                sentences.append(_sentence(claim, pod, queue, owner))
            else:
                self._reported.pop((foreign_pods, queue), None)  # The queue's next pod is reported.
        return sentences

    def _owner(self, pod: PodView, queue: QueueName, claim: ClaimView) -> QueueName:
        """The other queue that owns a claim which the pod uses or is refused; "" for none."""
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
