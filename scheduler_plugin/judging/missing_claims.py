"""Claims that a pod names and cannot use: a pod with an unknown claim is not judged.

    not known     the watch may lag behind that of kube-scheduler
    not made      it is made of a template, and the pod's status does not name it yet
    gone          it was deleted, or the API server said that it does not exist
    terminating   it is being deleted: kube-scheduler does not queue pods that name it, and does not
                  report that

The pod waits, whatever the claim costs: without it, the verdict would count too little.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.pods import PodClaim, PodView


def missing_claims(pod: PodView, facts: FactsView) -> tuple[str, ...]:
    """Names of the pod's missing or terminating claims, and of templates of claims not made yet."""
    names = [name for name in pod.claim_names if facts.claim_named(pod.namespace, name) is None]
    terminating = (claim.name for claim in terminating_claims(pod, facts.claims_of(pod)))
    return (*names, *terminating, *(entry.template for entry in pod.claims if entry.is_to_be_made))


def terminating_claims(pod: PodView, claims: Sequence[ClaimView]) -> Iterator[ClaimView]:
    """The pod's terminating claims, without the one for extended resources.

    kube-scheduler makes that claim, deletes it after each failed attempt, and makes another.
    """
    named = {entry.claim for entry in pod.claims}
    return (claim for claim in claims if claim.is_deleting and claim.name in named)


def unknown_entries(pod: PodView, known: Collection[str]) -> Iterator[PodClaim]:
    """The entries of the pod's spec whose claim is not among these names."""
    for entry in pod.claims:
        name = entry.claim or f"{pod.name}-{entry.name}"
        if name not in known and (entry.claim or entry.is_to_be_made):
            yield entry
