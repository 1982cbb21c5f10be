"""The owner of a claim: the queue that is charged for it, whichever pods use it.

    1 the label, unless it is stale
    2 the decision in flight (`assumptions`)
    3 for an orphan, which is used without an owner: what the orphan policy says
    4 after a restart: the queue of the earliest pod that the claim is reserved for
    5 none yet: the first pod to bind it decides

A label that a user set at creation stays. A label that the binder wrote ends with the allocation:
it is stale if the pod that it was written for is not a consumer, and no consumer has a node or may
have one that is not visible yet (the label would count again once it is). The reservation of a
PodGroup keeps it: it keeps the devices, too, until `stale_claims` removes it.

Policies forbid edits of the label, but an administrator can switch them off: an edited label
counts, and is reported (`label_edits.LabelEdit`).
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import OrphanPolicy, OwnerLifetime, PodUid, QueueName
from scheduler_plugin.objects.pods import PodView, oldest


@dataclass(frozen=True, slots=True)
class Owner:
    """The queue that owns a claim.

    Attributes:
        pod: The pod whose queue it is; None if the queue is written on the claim.
        is_orphans: Whether the claim is an orphan, and the orphan policy decides this owner.
    """

    queue: QueueName
    pod: PodUid | None = None
    is_orphans: bool = False


def labelled_owner(claim: ClaimView, facts: FactsView) -> QueueName | None:
    """The owner that is written on the claim; None if there is none, or it is stale."""
    return claim.label if claim.label and not is_stale(claim, facts) else None


def is_stale(claim: ClaimView, facts: FactsView) -> bool:
    """Whether the label was written by the binder for an allocation that has ended."""
    if not claim.owner_pod or facts.settings.owner_lifetime is OwnerLifetime.CLAIM:
        return False
    if claim.owner_pod in claim.reserved_for or claim.groups or claim.other_consumers:
        return False
    return not (runs(claim, facts) or any(map(facts.may_have_node, claim.reserved_for)))


def runs(claim: ClaimView, facts: FactsView) -> bool:
    """Whether a consumer of the claim has a node."""
    return any(pod.is_bound for pod in facts.consumers(claim))


def is_orphan(claim: ClaimView, facts: FactsView) -> bool:
    """Whether the claim is allocated and used, and has no owner.

    Decisions in flight are ignored here: they decide an owner only while they last.
    """
    return claim.is_allocated and labelled_owner(claim, facts) is None and runs(claim, facts)


def orphan_owner(claim: ClaimView, facts: FactsView) -> Owner | None:
    """The queue that an orphan is attributed to; None for none.

    `OldestPod` takes the oldest consumer that has a queue; ties are broken by namespace and name. A
    queue that does not exist or does not admit the pod's namespace is ignored, since an unjudged
    pod can name any queue. So are pods that ended.
    """
    if facts.settings.orphan_policy is OrphanPolicy.UNATTRIBUTED:
        return None
    return _owner_by(_running_first(claim, facts), facts, is_orphans=True)


def earliest_reservation(claim: ClaimView, facts: FactsView) -> Owner | None:
    """The owner that was decided before a restart: kube-scheduler reserves in the order of binding.

    Pods that may not use their queue are ignored: they are refused at Bind.
    """
    return _owner_by(_reserving(claim, facts), facts)


def awaited_pod(claim: ClaimView, facts: FactsView) -> PodView | None:
    """The pod whose queue will own the claim, if that queue is not known yet; None otherwise.

    It follows the rules of `owner_of` without a decision in flight.
    """
    if not claim.is_allocated or labelled_owner(claim, facts) is not None:
        return None
    is_used = runs(claim, facts)
    if is_used and facts.settings.orphan_policy is OrphanPolicy.UNATTRIBUTED:
        return None
    pods = _running_first(claim, facts) if is_used else _reserving(claim, facts)
    first = _first_with_queue(pods, facts)
    return first if first is not None and facts.awaits(first) else None


def _running_first(claim: ClaimView, facts: FactsView) -> list[PodView]:
    return oldest(pod for pod in facts.consumers(claim) if not pod.ended)


def _reserving(claim: ClaimView, facts: FactsView) -> list[PodView]:
    return [pod for pod in facts.reserving(claim) if pod.may_be_bound]


def _first_with_queue(pods: list[PodView], facts: FactsView) -> PodView | None:
    """The first pod that may use its queue, or whose queue is not known yet."""
    found = (pod for pod in pods if facts.awaits(pod) or facts.may_use(pod, facts.queue_of(pod)))
    return next(found, None)


def _owner_by(pods: list[PodView], facts: FactsView, *, is_orphans: bool = False) -> Owner | None:
    """The queue of the first of these pods that may use it; None while that is not known."""
    pod = _first_with_queue(pods, facts)
    if pod is None or facts.awaits(pod):
        return None
    return Owner(facts.queue_of(pod), pod.uid, is_orphans)


def owner_of(claim: ClaimView, facts: FactsView, assumed: Owner | None) -> Owner | None:
    """The owner of a claim; None if the queue of the next bound pod becomes the owner.

    If `awaited_pod` returns a pod, no pod of the claim may be bound yet.
    """
    label = labelled_owner(claim, facts)
    if label is not None:
        return Owner(label)
    if assumed is not None or not claim.is_allocated:
        return assumed
    if runs(claim, facts):
        return orphan_owner(claim, facts)
    return earliest_reservation(claim, facts)
