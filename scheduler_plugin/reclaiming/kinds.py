"""Which pods that wait are alike: what is decided about one of them holds for the others."""

from __future__ import annotations

from collections.abc import Hashable

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.pods import PodView


def kind_of(pod: PodView, world: WorldView) -> Hashable | None:
    """Equal for pods that only their nodes and selectors tell apart; None for one like no other."""
    facts, assumptions = world.facts, world.assumptions
    claims = facts.claims_of(pod)
    is_counted = assumptions.is_assumed(pod.uid) or pod.uid in assumptions.holds
    if pod.group or pod.extended_claim or is_counted or len(claims) < len(pod.claim_names):
        return None
    if not all(_is_its_alone(claim, world) for claim in claims):
        return None
    asked = tuple((claim.label, claim.requests) for claim in claims)
    tried = pod.gates, pod.untried, pod.unschedulable, pod.reclaiming, pod.scheduler
    who = pod.namespace, facts.queue_of(pod), pod.priority, pod.non_preemptible
    return who, asked, pod.requests, tried


def _is_its_alone(claim: ClaimView, world: WorldView) -> bool:
    is_free = not (claim.is_allocated or claim.reserved_for or claim.other_consumers)
    return is_free and not world.facts.is_named_twice(claim)
