"""The order of pending pods, and the maximum that each can be charged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from scheduler_plugin.accounting.charges.alternatives import least_cost
from scheduler_plugin.accounting.charges.costs import asked_cost, claim_cost
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.amounts import Charges, summed
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.names import ClaimUid, PodUid
from scheduler_plugin.objects.pods import PodView

SortKey: TypeAlias = tuple[int, str, str, str, PodUid]
"""The sort key of pending pods; the smaller is first."""


def sort_key(pod: PodView) -> SortKey:
    return (-pod.priority, pod.created, pod.namespace, pod.name, pod.uid)


def asked(pod: PodView, facts: FactsView) -> Charges:
    """The maximum that a pod can be charged."""
    return _together((pod,), facts, claim_cost)


def needed_together(pods: Iterable[PodView], facts: FactsView) -> Charges:
    """The least that pods must be charged together; a claim that they share counts once."""
    return _together(pods, facts, least_cost)


def _together(
    pods: Iterable[PodView], facts: FactsView, cost: Callable[[ClaimView, Catalog], Charges]
) -> Charges:
    requests: list[Charges] = []
    claims: dict[ClaimUid, ClaimView] = {}
    for pod in pods:
        requests.append(asked_cost(pod, facts.catalog))
        claims |= {claim.uid: claim for claim in facts.claims_of(pod)}
    return summed((*requests, *(cost(claim, facts.catalog) for claim in claims.values())))
