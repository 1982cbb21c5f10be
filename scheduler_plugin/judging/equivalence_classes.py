"""Equivalence classes of pods: what is known of one pod holds for all others of its class."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.claims import Alternative, ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView


def equivalence_class(pod: PodView, facts: FactsView) -> Hashable:
    """A key that is equal for pods with the same requests, and constant for a pod's lifetime.

    A claim that only this pod names is compared by its requests, any other by its UID. Owners that
    the binder wrote are ignored, since they end with the allocation.
    """
    claims = facts.claims_of(pod)
    asked = tuple(
        (_label(claim), claim.requests) if not facts.is_named_twice(claim) else claim.uid
        for claim in claims
    )
    who = pod.namespace, facts.queue_of(pod), pod.priority, pod.non_preemptible
    return who, pod.group, asked, pod.requests


def placement_class(pod: PodView, facts: FactsView) -> Hashable:
    """A key that is equal for pending pods with the same requests and the same suitable nodes."""
    demands = tuple(
        (claim.constraints, tuple((each.selectors, each.tolerations) for each in _asked(claim)))
        for claim in facts.claims_of(pod)
    )
    return equivalence_class(pod, facts), pod.needs, demands


def _label(claim: ClaimView) -> QueueName:
    return NO_QUEUE if claim.owner_pod else claim.label


def _asked(claim: ClaimView) -> Iterator[Alternative]:
    return (each for request in claim.requests for each in request.alternatives)
