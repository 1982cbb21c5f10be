"""Claims that a pod names and that are not there for it: what is not known is not judged.

    not known   the watch may be a moment behind kube-scheduler's own: the claim will come
    not made    a template's, and the pod's status does not say its name yet
    gone        it was deleted, or the API server said that there is none
    going       it is being deleted: kube-scheduler lets no pod into its queue that names it, and
                says so nowhere

The pod waits, whatever the claim might cost: taken for absent, it would cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.pods import PodClaim, PodView


def missing_claims(pod: PodView, facts: FactsView) -> tuple[str, ...]:
    """What the pod names and is not there: claims, and templates of claims to be made."""
    names = [name for name in pod.claim_names if facts.claim_named(pod.namespace, name) is None]
    going = (claim.name for claim in going_claims(pod, facts.claims_of(pod)))
    return (*names, *going, *(entry.template for entry in pod.claims if entry.is_to_be_made))


def going_claims(pod: PodView, claims: Sequence[ClaimView]) -> Iterator[ClaimView]:
    """Those of the pod's claims that are being deleted, and that it cannot do without.

    The claim that kube-scheduler makes for extended resources it deletes after each attempt that
    failed, and makes another.
    """
    named = {entry.claim for entry in pod.claims}
    return (claim for claim in claims if claim.is_deleting and claim.name in named)


def unknown_entries(pod: PodView, known: Collection[str]) -> Iterator[PodClaim]:
    """The pod's entries for which there is no claim of these names."""
    for entry in pod.claims:
        name = entry.claim or f"{pod.name}-{entry.name}"
        if name not in known and (entry.claim or entry.is_to_be_made):
            yield entry
