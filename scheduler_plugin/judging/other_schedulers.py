"""Pods of other schedulers that ask for accounted devices; Moorage cannot bind them."""

from __future__ import annotations

from scheduler_plugin.accounting.charges.costs import is_accounted
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.pods import PodView, why_not_ours


def why_other_scheduler(pod: PodView, facts: FactsView) -> str:
    """Why another scheduler binds the pod, as a sentence; "" if Moorage does, or need not."""
    why = why_not_ours(pod, facts.settings)
    return why if why and _asks_for_accounted(pod, facts) else ""


def _asks_for_accounted(pod: PodView, facts: FactsView) -> bool:
    catalog = facts.catalog
    if any(catalog.accounted_resource(name) is not None for name, _ in pod.requests):
        return True
    return any(is_accounted(claim, catalog) for claim in facts.claims_of(pod))
