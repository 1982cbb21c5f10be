"""Claims that a pod names and of which nothing is known: what is not known is not judged.

    not known   the watch may be a moment behind kube-scheduler's own: the claim will come
    not made    a template's, and the pod's status does not say its name yet
    gone        it was deleted, or the API server said that there is none

The pod waits, whatever the claim might cost: taken for absent, it would cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.pods import PodClaim, PodView


def missing_claims(pod: PodView, facts: FactsView) -> tuple[str, ...]:
    """What the pod names and is not there: claims, and templates of claims to be made."""
    names = [name for name in pod.claim_names if facts.claim_named(pod.namespace, name) is None]
    return (*names, *(entry.template for entry in pod.claims if entry.is_to_be_made))


def unknown_entries(pod: PodView, known: Collection[str]) -> Iterator[PodClaim]:
    """The pod's entries for which there is no claim of these names."""
    for entry in pod.claims:
        name = entry.claim or f"{pod.name}-{entry.name}"
        if name not in known and (entry.claim or entry.is_to_be_made):
            yield entry
