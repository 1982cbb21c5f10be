"""What one claim or pod is charged: it follows from the facts alone.

facts ──claim_entry, pod_entry──► entries
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.accounting.charges.costs import (
    asked_cost,
    claim_cost,
    granted_cost,
    is_accounted,
    mirrored_cost,
)
from scheduler_plugin.accounting.charges.owners import is_orphan, labelled_owner
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.mirror_pods import is_capped
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView, oldest


@dataclass(frozen=True, slots=True)
class ClaimEntry:
    """What one accounted claim means for the queues.

    Attributes:
        owner: The queue that is charged; "" while nobody is.
        cost: Exact where the claim is allocated, else the most that it can be.
        non_preemptible: Whether a consumer of the owner is non-preemptible.
        shared_out: Whether a consumer is of another queue.
        orphan: Whether it is used without an owner.
        orphan_of: The queues whose pods use it so; none where there is an owner.
        waits_for: The queue whose pods wait for it, while nobody is charged; "" for none.
        leaving: Whether all who use it are on their way out, so that it is free soon.
    """

    owner: QueueName
    cost: Charges
    non_preemptible: bool = False
    shared_out: bool = False
    orphan: bool = False
    orphan_of: tuple[QueueName, ...] = ()
    waits_for: QueueName = NO_QUEUE
    leaving: bool = False

    @property
    def is_charged(self) -> bool:
        return bool(self.owner)


@dataclass(frozen=True, slots=True)
class PodEntry:
    """What one pod's own requests mean for its queue: charged once bound, awaited before.

    Attributes:
        queue: The queue; "" for nobody, where it is bound and its queue is not to be charged.
        named: The queue that it says it has and may not use; "" for none, or where that is not
            known yet.
    """

    queue: QueueName
    cost: Charges
    non_preemptible: bool
    bound: bool
    leaving: bool = False
    named: QueueName = NO_QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUsage:
    """The figures of a queue's status.

    All but the numbers of claims include the queue's descendants; a claim is owned by one queue.

    Attributes:
        requested: Usage, and what waiting pods ask for.
        shared_out: How many of the owned claims have a foreign consumer.
        orphans: How many claims its pods use that nobody owns.
    """

    usage: Charges = NO_CHARGES
    non_preemptible: Charges = NO_CHARGES
    requested: Charges = NO_CHARGES
    owned: int = 0
    shared_out: int = 0
    orphans: int = 0


def claim_entry(claim: ClaimView, facts: FactsView) -> ClaimEntry | None:
    """A claim's entry; None for one that is not accounted, or that nobody waits for or has."""
    if not is_accounted(claim, facts.catalog):
        return None
    owner = labelled_owner(claim, facts)
    cost = claim_cost(claim, facts.catalog)
    if owner is None or not claim.is_allocated:
        if is_orphan(claim, facts):
            return ClaimEntry(NO_QUEUE, cost, orphan=True, orphan_of=_users(claim, facts))
        return ClaimEntry(NO_QUEUE, cost, waits_for=_waits_for(claim, owner, facts))
    using = (p for p in facts.consumers(claim) if not p.ended and facts.knows_queue_of(p))
    consumers = [(facts.queue_of(p), p) for p in using]
    return ClaimEntry(
        owner,
        cost,
        non_preemptible=any(queue == owner and p.non_preemptible for queue, p in consumers),
        shared_out=any(queue != owner for queue, _ in consumers),
        leaving=_is_left(claim, facts),
    )


def _is_left(claim: ClaimView, facts: FactsView) -> bool:
    """Whether every user is being deleted, ended, or gone: a controller clears it after them."""
    stays = (not (pod.ended or pod.deleting) for pod in facts.consumers(claim))
    return bool(claim.reserved_for) and not claim.other_consumers and not any(stays)


def _users(claim: ClaimView, facts: FactsView) -> tuple[QueueName, ...]:
    """The queues of the consumers that have not ended."""
    queues = {facts.queue_of(pod) for pod in facts.consumers(claim) if not pod.ended}
    return tuple(sorted(queues - {NO_QUEUE}))


def _waits_for(claim: ClaimView, owner: QueueName | None, facts: FactsView) -> QueueName:
    """The owner if there is one, else the queue of the oldest pod that waits and may use its own.

    Whoever asks for what his namespace may not use takes nobody's share of anything.
    """
    waiting = oldest(p for p in facts.pods_naming(claim) if not p.is_bound and not p.ended)
    queues = ((owner or facts.queue_of(pod), pod) for pod in waiting)
    return next((queue for queue, pod in queues if facts.may_use(pod, queue)), NO_QUEUE)


def pod_entry(pod: PodView, facts: FactsView) -> PodEntry | None:
    """A pod's entry; None for one without accounted requests, or at its end.

    None, too, for one that waits and has no queue that it may use. One that got its node without a
    verdict is charged to no such queue either.
    """
    if pod.ended or not pod.requests:
        return None
    cost = _pod_cost(pod, facts)
    queue = facts.charged_queue(pod)
    if not cost or not (queue or pod.is_bound):
        return None
    leaving = pod.is_bound and pod.deleting
    is_known = bool(queue) or pod.namespace not in facts.namespaces
    named = NO_QUEUE if is_known else facts.queue_of(pod)
    return PodEntry(queue, cost, pod.non_preemptible, pod.is_bound, leaving, named)


def _pod_cost(pod: PodView, facts: FactsView) -> Charges:
    pod = facts.without_lost_claim(pod)
    if not pod.is_bound:
        return asked_cost(pod, facts.catalog)
    if is_capped(pod):
        return mirrored_cost(pod, facts.mirrors_before(pod), facts.catalog)
    return granted_cost(pod, facts.catalog)


def why_unattributed(pod: PodView, facts: FactsView) -> str:
    """Why what a bound pod's requests use is charged to nobody, as a sentence; "" where it is.

    "", too, where more may be known in a moment.
    """
    if pod.ended or not pod.is_bound or facts.awaits(pod) or facts.charged_queue(pod):
        return ""
    return unattributed_sentence(pod, facts) if _pod_cost(pod, facts) else ""


def unattributed_sentence(pod: PodView, facts: FactsView) -> str:
    """What a pod's requests use that is charged to nobody, and why."""
    used = ", ".join(f"{amount} {key}" for key, amount in _pod_cost(pod, facts))
    queue = facts.queue_of(pod)
    why = f'its namespace may not use queue "{queue}"' if queue else "it has no queue"
    return f"{pod} got its node without a verdict, and {why}: its {used} are charged to nobody."
