"""What was taken back for a pod, and whether its users have ended by now."""

from __future__ import annotations

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.objects.names import PodUid


def users_left(hold: Hold, facts: FactsView) -> set[PodUid]:
    """The pods that use what was taken and have not ended: until then no other pod can get it."""
    pods = [facts.pod(uid) for uid in hold.awaits_pods]
    for claim in map(facts.claim, hold.awaits):
        if claim is not None and claim.is_allocated:
            pods += facts.consumers(claim)
    return {pod.uid for pod in pods if pod is not None and pod.is_bound and not pod.ended}
