"""What a claim may cost before its allocation, where its requests have alternatives.

kube-scheduler allocates one alternative of each request: it tries them in their order, and the
first request's alternatives change last. All combinations are looked at if there are few of them.
Of more combinations than that only the least amount of each resource is known. It is no more than
what any combination costs: a pod that could fit is never refused by it, and Bind judges what was
allocated.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_plugin.accounting.charges.costs import claim_cost, costs_by_request
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges, least_of, summed
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.catalog import Catalog

MOST_COMBINATIONS = 64
"""The largest number of combinations of alternatives that is looked at: eight of each of two
requests. kube-scheduler allows eight of each of 32."""


def has_alternatives(claim: ClaimView) -> bool:
    """Whether it is not decided yet which alternative of a request the claim gets."""
    return not claim.is_allocated and any(len(r.alternatives) > 1 for r in claim.requests)


def least_cost(claim: ClaimView, catalog: Catalog) -> Charges:
    """The exact cost of an allocated claim; of another the least that any alternatives cost."""
    if not has_alternatives(claim):
        return claim_cost(claim, catalog)
    return summed(map(least_of, costs_by_request(claim, catalog)))


def possible_costs(claim: ClaimView, catalog: Catalog) -> tuple[Charges, ...]:
    """The different costs of all combinations of alternatives, in kube-scheduler's order.

    Empty where there are more than `MOST_COMBINATIONS`.
    """
    if not has_alternatives(claim):
        return (claim_cost(claim, catalog),)
    found: tuple[Charges, ...] = (NO_CHARGES,)
    for costs in costs_by_request(claim, catalog):
        found = _distinct(before.plus(cost) for before in found for cost in costs)
        if len(found) > MOST_COMBINATIONS:
            return ()
    return found


def _distinct(costs: Iterable[Charges]) -> tuple[Charges, ...]:
    return tuple(dict.fromkeys(costs))
