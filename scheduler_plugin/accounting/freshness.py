"""Which objects of a pod must be read again before its verdict at Bind.

When kube-scheduler calls Bind, it has written the allocation and the reservation of every claim,
and for extended resources a claim and the pod's status. The watch may lag behind: a verdict on the
state before would charge the wrong amounts.
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
    """Whether claims may have been made for the pod that its known version does not name.

    If the API server's version does not name them either, there are none.
    """
    is_to_come = any(entry.is_to_be_made for entry in pod.claims)
    return is_to_come or awaits_extended_claim(pod, facts.catalog)


def awaits_extended_claim(pod: PodView, catalog: Catalog) -> bool:
    """Whether an accounted claim for extended resources may exist that is not known.

    Where a device plugin serves the resources, there is no such claim. A class may be deleted after
    kube-scheduler made a claim of it: the claim's devices are charged nevertheless.
    """
    return any(_may_be_accounted(resource, catalog) for resource, _ in pod.uncovered)


def _may_be_accounted(resource: str, catalog: Catalog) -> bool:
    name = catalog.resource_class(resource)
    if name is None:
        return catalog.had_class(resource)
    return catalog.may_be_ours(name) or catalog.accounted_key(name) is not None


def costs_are_known(pod: PodView, facts: FactsView) -> bool:
    """Whether all selectors that decide what the pod's claims cost are evaluated."""
    return not any(claim.uid in facts.open_looks for claim in facts.claims_of(pod))


def claims_to_read(pod: PodView, facts: FactsView) -> tuple[str, ...]:
    """Names of the pod's claims that are unknown, or not yet known to be reserved for the pod."""
    return tuple(name for name in pod.claim_names if not _is_fresh(pod, name, facts))


def _is_fresh(pod: PodView, name: str, facts: FactsView) -> bool:
    claim = facts.claim_named(pod.namespace, name)
    if claim is None:
        return False
    if not may_be_accounted(claim, facts.catalog):
        return True
    return claim.is_allocated and facts.is_reserved_for(claim, pod)


def stand(owners: Iterable[ClaimOwner], facts: FactsView) -> bool:
    """Whether all claims have the judged owner: one may end while another is written."""
    return all(_says(owner, facts) for owner in owners)


def _says(owner: ClaimOwner, facts: FactsView) -> bool:
    claim = facts.claim(owner.uid)
    return claim is not None and labelled_owner(claim, facts) == owner.queue


def owned_claims(pod: PodView, facts: FactsView) -> tuple[str, ...]:
    """Names of the accounted claims that have an owner already.

    A claim whose owner is written is proved to be the newest version by the precondition of the
    write. These claims are not written, and the reservation of an earlier attempt looks like that
    of this one, so they must be read.
    """
    return tuple(claim.name for claim in _accounted_claims(pod, facts, owned=True))


def owned_group_claims(pod: PodView, facts: FactsView) -> tuple[str, ...]:
    """Names of those that are reserved for the pod's PodGroup, perhaps since another pod's Bind."""
    owned = _accounted_claims(pod, facts, owned=True)
    return tuple(claim.name for claim in owned if facts.is_reserved_for_group(claim, pod))


def unowned_claims(pod: PodView, facts: FactsView) -> tuple[ClaimUid, ...]:
    """The accounted claims whose owner is to be written, in an order common to all pods."""
    return tuple(sorted(claim.uid for claim in _accounted_claims(pod, facts, owned=False)))


def _accounted_claims(pod: PodView, facts: FactsView, *, owned: bool) -> Iterator[ClaimView]:
    for claim in facts.claims_of(pod):
        has_owner = labelled_owner(claim, facts) is not None
        if has_owner == owned and is_accounted(claim, facts.catalog):
            yield claim
