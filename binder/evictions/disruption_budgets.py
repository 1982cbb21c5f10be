"""PodDisruptionBudgets, and whether they let a whole set of pods go.

The API server asks one budget for one pod at a time, so that a budget for one pod lets the first
of two go and not the second. Here the set is counted first. Pods that are not ready count for no
budget: the API server has rules of its own for those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_plugin.api import LabelSelector, Operator, Requirement


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget.

    Attributes:
        allowed: How many ready pods may be evicted at this moment.
    """

    name: str
    selector: LabelSelector
    allowed: int


@dataclass(frozen=True, slots=True)
class CoveredPod:
    """A pod as budgets see it."""

    name: str
    labels: Mapping[str, str]
    is_ready: bool


def disruption_budget(obj: Mapping[str, Any]) -> DisruptionBudget | None:
    """Read a PodDisruptionBudget; None for one that selects nothing."""
    selector = (obj.get("spec") or {}).get("selector")
    if selector is None:
        return None
    labels = (selector.get("matchLabels") or {}).items()
    expressions = selector.get("matchExpressions") or ()
    requirements = [Requirement(key, Operator.IN, (value,)) for key, value in labels]
    requirements += [
        Requirement(e["key"], Operator(e["operator"]), tuple(e.get("values") or ()))
        for e in expressions
    ]
    allowed = (obj.get("status") or {}).get("disruptionsAllowed", 0)
    return DisruptionBudget(obj["metadata"]["name"], LabelSelector(tuple(requirements)), allowed)


def covered_pod(obj: Mapping[str, Any]) -> CoveredPod:
    """Read a Pod."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    conditions = status.get("conditions") or ()
    is_ready = any((c.get("type"), c.get("status")) == ("Ready", "True") for c in conditions)
    is_running = status.get("phase") == "Running" and not metadata.get("deletionTimestamp")
    return CoveredPod(metadata["name"], metadata.get("labels") or {}, is_ready and is_running)


def too_many(budgets: Iterable[DisruptionBudget], pods: Iterable[CoveredPod]) -> str:
    """Which budget does not let all of these pods go at one time, as a sentence; "" for none."""
    ready = [pod for pod in pods if pod.is_ready]
    for budget in budgets:
        count = sum(budget.selector.matches(pod.labels) for pod in ready)
        if count > budget.allowed:
            return (
                f'PodDisruptionBudget "{budget.name}" lets {budget.allowed} of its pods go now,'
                f" and {count} would have to go together."
            )
    return ""
