"""Which pods are alike: what is remembered of one of them holds for those that come after it."""

from __future__ import annotations

from collections.abc import Hashable

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.pods import PodView


def equivalence_class(pod: PodView, facts: FactsView) -> Hashable:
    """Equal for pods that ask for the same, of whatever they are made, for as long as they live.

    A claim that only the pod uses counts by what it asks for, any other by its UID.
    """
    claims = facts.claims_of(pod)
    asked = tuple(
        (claim.label, claim.requests) if not facts.is_named_twice(claim) else claim.uid
        for claim in claims
    )
    who = pod.namespace, facts.queue_of(pod), pod.priority, pod.non_preemptible
    return who, pod.group, asked, pod.requests
