"""Pods that must end before a preemptor can use what is held for it."""

from __future__ import annotations

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.objects.names import PodUid


def remaining_users(hold: Hold, facts: FactsView) -> set[PodUid]:
    """The pods that use what is held and have not ended; meanwhile no other pod can get it."""
    pods = [facts.pod(uid) for uid in hold.awaits_pods]
    for claim in map(facts.claim, hold.awaits):
        if claim is not None and claim.is_allocated:
            pods += facts.consumers(claim)
    return {pod.uid for pod in pods if pod is not None and pod.is_bound and not pod.ended}
