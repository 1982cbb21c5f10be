"""The cases of a pod whose claims have alternatives (`firstAvailable`): one for each combination.

The pod fits if any of them does. Which one is allocated is known at Bind only; until then the first
that fits is assumed, in kube-scheduler's order: it allocates the first that a node has. The largest
would keep room from other pods that it seldom needs; the smallest would let them through in vain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scheduler_plugin.accounting.charges.alternatives import (
    MOST_COMBINATIONS,
    has_alternatives,
    possible_costs,
)
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import Case, case_of
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.pods import PodView


def have_alternatives(claims: Sequence[ClaimView]) -> bool:
    """Whether a pod with these claims has more than one case."""
    return any(map(has_alternatives, claims))


def cases_of(pod: PodView, claims: Sequence[ClaimView], world: WorldView) -> Iterator[Case]:
    """The case of each combination, in kube-scheduler's order; none where they are too many."""
    for costs in _combinations(pod, claims, world):
        yield case_of(pod, claims, world, at_bind=False, costs=costs)


def _combinations(
    pod: PodView, claims: Sequence[ClaimView], world: WorldView
) -> list[Mapping[str, Charges]]:
    """The costs of the claims, by name, for each combination."""
    found: list[Mapping[str, Charges]] = [{}]
    for claim in filter(has_alternatives, claims):
        if world.assumptions.cost_for_another(claim.uid, pod.uid) is None:
            costs = possible_costs(claim, world.facts.catalog)
            found = [{**before, claim.name: cost} for before in found for cost in costs]
            if len(found) > MOST_COMBINATIONS:
                return []
    return found
