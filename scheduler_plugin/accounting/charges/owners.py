"""Whose a claim is: the queue that is charged for it, whoever else uses it.

    1 the label, unless it is stale
    2 the decision in flight (`assumptions`)
    3 for a claim that runs without an owner, an orphan: what the policy says
    4 after a restart: the queue of the earliest pod that the claim is reserved for
    5 nobody's yet: the first pod to bind it decides

A label that a user set at creation stays. One that the binder wrote ends with the allocation: it
is stale when neither the pod it was written for is a consumer nor any consumer has a node, or may
have it without being seen: once it is, the label would count again.

Nobody may edit a label, but an administrator who switches the policies off can: what it says then
counts, and people are told (`label_edits.LabelEdit`).
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
        pod: The pod whose queue it is; None where it is written on the claim.
        is_orphans: Whether the claim runs without an owner, and the policy says this one.
    """

    queue: QueueName
    pod: PodUid | None = None
    is_orphans: bool = False


def labelled_owner(claim: ClaimView, facts: FactsView) -> QueueName | None:
    """The queue that is written on the claim as its owner; None for none, or a stale one."""
    return claim.label if claim.label and not is_stale(claim, facts) else None


def is_stale(claim: ClaimView, facts: FactsView) -> bool:
    """Whether a label that the binder wrote outlived the allocation it was written for."""
    if not claim.owner_pod or facts.settings.owner_lifetime is OwnerLifetime.CLAIM:
        return False
    if claim.owner_pod in claim.reserved_for or claim.other_consumers:
        return False
    return not (runs(claim, facts) or any(map(facts.may_have_node, claim.reserved_for)))


def runs(claim: ClaimView, facts: FactsView) -> bool:
    """Whether a consumer of the claim has a node."""
    return any(pod.is_bound for pod in facts.consumers(claim))


def is_orphan(claim: ClaimView, facts: FactsView) -> bool:
    """Whether the claim is allocated and used, and nobody owns it.

    A decision in flight is not looked at here: it makes an owner, but only for its own time.
    """
    return claim.is_allocated and labelled_owner(claim, facts) is None and runs(claim, facts)


def orphan_owner(claim: ClaimView, facts: FactsView) -> Owner | None:
    """Whom an orphan is attributed to; None for nobody.

    `OldestPod` takes the oldest consumer that has a queue; ties by namespace and name. A queue that
    does not exist or does not admit the pod's namespace is none: anybody could have named it where
    nothing judged the pod. A pod that ended uses nothing any more.
    """
    if facts.settings.orphan_policy is OrphanPolicy.UNATTRIBUTED:
        return None
    return _owner_by(_running_first(claim, facts), facts, is_orphans=True)


def earliest_reservation(claim: ClaimView, facts: FactsView) -> Owner | None:
    """The decision that a restart forgot: kube-scheduler reserves in the order of deciding.

    Of a queue that the pod may not use nobody decided it: the pod is refused when it is bound.
    """
    return _owner_by(_reserving(claim, facts), facts)


def awaited_pod(claim: ClaimView, facts: FactsView) -> PodView | None:
    """The pod whose queue owns the claim, where that is not known yet; None where it is.

    As for `owner_of` where no decision is in flight.
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
    return [pod for pod in facts.consumers(claim) if pod.may_be_bound]


def _first_with_queue(pods: list[PodView], facts: FactsView) -> PodView | None:
    """The first that has a queue that it may use, or whose queue is not known yet."""
    found = (pod for pod in pods if facts.awaits(pod) or facts.may_use(pod, facts.queue_of(pod)))
    return next(found, None)


def _owner_by(pods: list[PodView], facts: FactsView, *, is_orphans: bool = False) -> Owner | None:
    """What is not known is nobody's yet."""
    pod = _first_with_queue(pods, facts)
    if pod is None or facts.awaits(pod):
        return None
    return Owner(facts.queue_of(pod), pod.uid, is_orphans)


def owner_of(claim: ClaimView, facts: FactsView, assumed: Owner | None) -> Owner | None:
    """The owner of a claim; None where the next pod to bind it becomes the owner.

    Where `awaited_pod` finds one, nobody may be bound before more is known.
    """
    label = labelled_owner(claim, facts)
    if label is not None:
        return Owner(label)
    if assumed is not None or not claim.is_allocated:
        return assumed
    if runs(claim, facts):
        return orphan_owner(claim, facts)
    return earliest_reservation(claim, facts)
