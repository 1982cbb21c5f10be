"""Which pods are alike: what is remembered of one of them holds for those that come after it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.claims import Alternative, ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView


def equivalence_class(pod: PodView, facts: FactsView) -> Hashable:
    """Equal for pods that ask for the same, of whatever they are made, for as long as they live.

    A claim that only the pod uses counts by what it asks for, any other by its UID. An owner that
    the binder wrote makes no difference: it is gone with the allocation.
    """
    claims = facts.claims_of(pod)
    asked = tuple(
        (_label(claim), claim.requests) if not facts.is_named_twice(claim) else claim.uid
        for claim in claims
    )
    who = pod.namespace, facts.queue_of(pod), pod.priority, pod.non_preemptible
    return who, pod.group, asked, pod.requests


def placement_class(pod: PodView, facts: FactsView) -> Hashable:
    """Equal for pods that wait, ask for the same, and would do on the same nodes and devices."""
    demands = tuple(
        (claim.constraints, tuple((each.selectors, each.tolerations) for each in _asked(claim)))
        for claim in facts.claims_of(pod)
    )
    return equivalence_class(pod, facts), pod.needs, demands


def _label(claim: ClaimView) -> QueueName:
    return NO_QUEUE if claim.owner_pod else claim.label


def _asked(claim: ClaimView) -> Iterator[Alternative]:
    return (each for request in claim.requests for each in request.alternatives)
