"""A device consumes its counters once while it is in use, however many claims have parts of it.

The claim that was allocated first is charged for them. Once that ends, the next one is, also beyond
its limit: the device is in use, and another queue does not pay for it any more.
"""

from __future__ import annotations

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.names import ClaimUid


def paid_by_others(claim: ClaimView, facts: FactsView) -> frozenset[DeviceId]:
    """The devices of a claim whose counters another claim is charged for."""
    if not (claim.parts and facts.tree.definitions.have_counters):
        return frozenset()
    return frozenset(device for device in claim.parts if not _is_first(claim, device, facts))


def _is_first(claim: ClaimView, device: DeviceId, facts: FactsView) -> bool:
    sharers = (*facts.claims_with(device), claim)
    return min((each.allocated_at, each.uid) for each in sharers)[1] == claim.uid


def sharers_of(facts: FactsView, *claims: ClaimView | None) -> list[ClaimUid]:
    """The claims that have parts of the same devices as these."""
    if not facts.tree.definitions.have_counters:
        return []
    parts = {device: None for claim in filter(None, claims) for device in claim.parts}
    return list(dict.fromkeys(found.uid for d in parts for found in facts.claims_with(d)))
