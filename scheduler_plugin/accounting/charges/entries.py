"""The ledger entry of one claim or pod, which follows from the facts alone.

facts ──claim_entry, pod_entry──► entries
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.accounting.charges.costs import (
    asked_cost,
    claim_cost,
    granted_cost,
    is_accounted,
)
from scheduler_plugin.accounting.charges.owners import is_orphan, labelled_owner
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.shared_counters import paid_by_others
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView, oldest


@dataclass(frozen=True, slots=True)
class ClaimEntry:
    """What one accounted claim is charged.

    Attributes:
        owner: The queue that is charged; "" if none is.
        cost: Exact if the claim is allocated, else the maximum.
        non_preemptible: Whether a consumer of the owner's queue is non-preemptible.
        shared_out: Whether a consumer is of another queue.
        orphan: Whether the claim is used without an owner.
        orphan_of: The queues whose pods use an orphan; () for any other claim.
        waits_for: The queue whose pods wait for an uncharged claim; "" for none.
        terminating: Whether all consumers are terminating or ended, so that it is free soon.
    """

    owner: QueueName
    cost: Charges
    non_preemptible: bool = False
    shared_out: bool = False
    orphan: bool = False
    orphan_of: tuple[QueueName, ...] = ()
    waits_for: QueueName = NO_QUEUE
    terminating: bool = False

    @property
    def is_charged(self) -> bool:
        return bool(self.owner)


@dataclass(frozen=True, slots=True)
class PodEntry:
    """What one pod's own requests are charged: usage once it is bound, requested before.

    Attributes:
        queue: The queue; "" if the pod is bound and no queue may be charged.
        named: The queue that an uncharged pod names and may not use; "" for none, or while that is
            not known.
        terminating: Whether the pod is bound and terminating.
    """

    queue: QueueName
    cost: Charges
    non_preemptible: bool
    bound: bool
    terminating: bool = False
    named: QueueName = NO_QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUsage:
    """The figures of a queue's status.

    Amounts include the queue's descendants; numbers of claims do not.

    Attributes:
        requested: The usage, and what pending pods ask for.
        shared_out: How many of the owned claims have a foreign consumer.
        orphans: How many claims without an owner its pods use.
    """

    usage: Charges = NO_CHARGES
    non_preemptible: Charges = NO_CHARGES
    requested: Charges = NO_CHARGES
    owned: int = 0
    shared_out: int = 0
    orphans: int = 0


def claim_entry(claim: ClaimView, facts: FactsView) -> ClaimEntry | None:
    """A claim's entry; None for a claim that is not accounted."""
    if not is_accounted(claim, facts.catalog):
        return None
    owner = labelled_owner(claim, facts)
    cost = claim_cost(claim, facts.catalog, paid_by_others(claim, facts))
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
        terminating=_is_terminating(claim, facts),
    )


def _is_terminating(claim: ClaimView, facts: FactsView) -> bool:
    """Whether each consumer is terminating, ended or deleted, so that the claim will be cleared.

    So it is if no pod uses it through its PodGroups.
    """
    stays = (not (pod.ended or pod.deleting) for pod in facts.consumers(claim))
    is_reserved = bool(claim.reserved_for or claim.groups) and not claim.other_consumers
    return is_reserved and not any(stays)


def _users(claim: ClaimView, facts: FactsView) -> tuple[QueueName, ...]:
    """The queues of the consumers that have not ended."""
    queues = {facts.queue_of(pod) for pod in facts.consumers(claim) if not pod.ended}
    return tuple(sorted(queues - {NO_QUEUE}))


def _waits_for(claim: ClaimView, owner: QueueName | None, facts: FactsView) -> QueueName:
    """The owner, else the queue of the oldest pending pod; only for pods that may use that queue.

    Pods that may not use the queue must not count as its requests.
    """
    waiting = oldest(p for p in facts.pods_naming(claim) if not p.is_bound and not p.ended)
    queues = ((owner or facts.queue_of(pod), pod) for pod in waiting)
    return next((queue for queue, pod in queues if facts.may_use(pod, queue)), NO_QUEUE)


def pod_entry(pod: PodView, facts: FactsView) -> PodEntry | None:
    """A pod's entry; None for a pod without accounted requests, or one that ended.

    None, too, for a pending pod without a queue that it may use. A pod that was bound without a
    verdict is charged to no queue that it may not use.
    """
    if pod.ended or not pod.requests:
        return None
    cost = _pod_cost(pod, facts)
    queue = facts.charged_queue(pod)
    if not cost or not (queue or pod.is_bound):
        return None
    terminating = pod.is_bound and pod.deleting
    is_known = bool(queue) or pod.namespace not in facts.namespaces
    named = NO_QUEUE if is_known else facts.queue_of(pod)
    return PodEntry(queue, cost, pod.non_preemptible, pod.is_bound, terminating, named)


def _pod_cost(pod: PodView, facts: FactsView) -> Charges:
    pod = facts.without_lost_claim(pod)
    if not pod.is_bound:
        return asked_cost(pod, facts.catalog)
    return granted_cost(pod, facts.catalog)


def why_unattributed(pod: PodView, facts: FactsView) -> str:
    """Why a bound pod's requests are charged to no queue, as a sentence; "" if they are charged.

    "", too, while the pod's queue is not known yet.
    """
    if pod.ended or not pod.is_bound or facts.awaits(pod) or facts.charged_queue(pod):
        return ""
    return unattributed_sentence(pod, facts) if _pod_cost(pod, facts) else ""


def unattributed_sentence(pod: PodView, facts: FactsView) -> str:
    """What a pod uses that is charged to no queue, and why, as a sentence."""
    used = ", ".join(f"{amount} {key}" for key, amount in _pod_cost(pod, facts))
    queue = facts.queue_of(pod)
    why = f'its namespace may not use queue "{queue}"' if queue else "it has no queue"
    return f"{pod} was bound without a verdict, and {why}: its {used} are charged to no queue."
