"""Equivalence of waiting pods: a decision about one of them holds for the others."""

from __future__ import annotations

from collections.abc import Hashable

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.equivalence_classes import placement_class
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.pods import PodView


def kind_of(pod: PodView, world: WorldView) -> Hashable | None:
    """Equal for pods that the same targets serve now; None for a pod like no other."""
    facts, assumptions = world.facts, world.assumptions
    claims = facts.claims_of(pod)
    is_counted = assumptions.is_assumed(pod.uid) or pod.uid in assumptions.holds
    if pod.group or pod.extended_claim or is_counted or len(claims) < len(pod.claim_names):
        return None
    if not all(_is_its_alone(claim, world) for claim in claims):
        return None
    tried = pod.gates, pod.untried, pod.unschedulable, pod.reclaiming, pod.scheduler
    return placement_class(pod, world.facts), tried


def _is_its_alone(claim: ClaimView, world: WorldView) -> bool:
    is_free = not (claim.is_allocated or claim.reserved_for or claim.other_consumers)
    return is_free and not world.facts.is_named_twice(claim)
