"""What is known of a pod about to be bound, and what has to be read anew first.

When kube-scheduler asks for a binding it has written the allocation and the reservation of every
claim, and for extended resources a claim and the pod's status. The watch may be a moment behind:
a verdict on what was there before would charge what is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scheduler_plugin.accounting.charges.costs import (
    is_accounted,
    may_be_accounted,
)
from scheduler_plugin.accounting.charges.owners import labelled_owner
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.bindings import ClaimOwner
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.names import ClaimUid
from scheduler_plugin.objects.pods import PodView


def awaits_claims(pod: PodView, facts: FactsView) -> bool:
    """Whether claims may have been made for the pod that it is not known to use yet.

    If the API server knows of none either, its word is the last.
    """
    is_to_come = any(entry.is_to_be_made for entry in pod.claims)
    return is_to_come or awaits_extended_claim(pod, facts.catalog)


def awaits_extended_claim(pod: PodView, catalog: Catalog) -> bool:
    """Whether a claim for extended resources may have been made that is accounted, and not known.

    Where a device plugin serves them there is none, and there will be none. A class may be gone
    since kube-scheduler made a claim of it: what that has is charged all the same.
    """
    return any(_may_be_accounted(resource, catalog) for resource, _ in pod.uncovered)


def _may_be_accounted(resource: str, catalog: Catalog) -> bool:
    name = catalog.resource_class(resource)
    if name is None:
        return catalog.had_class(resource)
    return catalog.may_be_ours(name) or catalog.accounted_key(name) is not None


def claims_to_read(pod: PodView, facts: FactsView) -> tuple[str, ...]:
    """Names of the pod's claims that are unknown, or known as they were before its reservation."""
    return tuple(name for name in pod.claim_names if not _is_fresh(pod, name, facts))


def _is_fresh(pod: PodView, name: str, facts: FactsView) -> bool:
    claim = facts.claim_named(pod.namespace, name)
    if claim is None:
        return False
    if not may_be_accounted(claim, facts.catalog):
        return True
    return claim.is_allocated and pod.uid in claim.reserved_for


def stand(owners: Iterable[ClaimOwner], facts: FactsView) -> bool:
    """Whether the claims say what was judged: while one was written, another's owner may end."""
    return all(_says(owner, facts) for owner in owners)


def _says(owner: ClaimOwner, facts: FactsView) -> bool:
    claim = facts.claim(owner.uid)
    return claim is not None and labelled_owner(claim, facts) == owner.queue


def owned_claims(pod: PodView, facts: FactsView) -> tuple[str, ...]:
    """Names of the accounted claims on which no owner is to be written.

    Of any other claim the write proves, by its precondition, that the version that was judged is
    the newest. Of these nothing does: an earlier attempt's reservation looks like this one's.
    """
    return tuple(claim.name for claim in _accounted_claims(pod, facts, owned=True))


def unowned_claims(pod: PodView, facts: FactsView) -> tuple[ClaimUid, ...]:
    """The accounted claims on which an owner is to be written, in an order that all pods share."""
    return tuple(sorted(claim.uid for claim in _accounted_claims(pod, facts, owned=False)))


def _accounted_claims(pod: PodView, facts: FactsView, *, owned: bool) -> Iterator[ClaimView]:
    for claim in facts.claims_of(pod):
        has_owner = labelled_owner(claim, facts) is not None
        if has_owner == owned and is_accounted(claim, facts.catalog):
            yield claim
