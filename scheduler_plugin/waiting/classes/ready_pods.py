"""Whether a waiting pod can be judged."""

from __future__ import annotations

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.missing_claims import missing_claims
from scheduler_plugin.judging.other_schedulers import why_other_scheduler
from scheduler_plugin.objects.names import QUOTA_GATE
from scheduler_plugin.objects.pods import PodView


def is_ready(pod: PodView, world: WorldView) -> bool:
    """Whether the pod can be judged: its claims exist, and it has no gate but the quota gate.

    A pod of another scheduler that requests devices is never ready.
    """
    if why_other_scheduler(pod, world.facts):
        return False
    return set(pod.gates) <= {QUOTA_GATE} and not missing_claims(pod, world.facts)
