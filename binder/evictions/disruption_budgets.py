"""PodDisruptionBudgets, and whether they allow the eviction of a whole set of pods.

The API server checks one pod at a time: a budget for one pod allows the eviction of the first of
two pods, and not of the second. Here the whole set is counted first. Pods that are not ready do
not count: the API server has other rules for those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kube.shapes.budgets import NO_SPEC, NO_STATUS, Budget
from kube.shapes.pods import NO_STATUS as NO_POD_STATUS
from kube.shapes.pods import Pod
from kube.shapes.reading import JsonObject, read_as
from scheduler_plugin.objects.api import LabelSelector, selector_of


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget.

    Attributes:
        allowed: The number of ready pods that may be evicted now.
    """

    name: str
    selector: LabelSelector
    allowed: int


@dataclass(frozen=True, slots=True)
class CoveredPod:
    """The properties of a pod that count for budgets."""

    name: str
    labels: Mapping[str, str]
    is_ready: bool


def disruption_budget(obj: JsonObject) -> DisruptionBudget | None:
    """Read a PodDisruptionBudget; None for one that selects nothing. Raises ValueError."""
    found = read_as(Budget, obj)
    selector = selector_of((found.spec or NO_SPEC).selector)
    allowed = (found.status or NO_STATUS).disruptions_allowed or 0
    return DisruptionBudget(found.metadata.name, selector, allowed) if selector else None


def covered_pod(obj: JsonObject | Pod) -> CoveredPod:
    """Read a Pod; raises UnreadableError."""
    pod = read_as(Pod, obj)
    status = pod.status or NO_POD_STATUS
    is_ready = any((c.type, c.status) == ("Ready", "True") for c in status.conditions or ())
    is_running = status.phase == "Running" and not pod.metadata.deletion_timestamp
    return CoveredPod(pod.metadata.name, pod.metadata.labels or {}, is_ready and is_running)


def too_many(budgets: Iterable[DisruptionBudget], pods: Iterable[CoveredPod]) -> str:
    """The budget that does not allow the eviction of all these pods, as a sentence; "" for none."""
    ready = [pod for pod in pods if pod.is_ready]
    for budget in budgets:
        count = sum(budget.selector.matches(pod.labels) for pod in ready)
        if count > budget.allowed:
            return (
                f'PodDisruptionBudget "{budget.name}" allows eviction of {budget.allowed} of its'
                f" pods now, and {count} would have to be evicted together."
            )
    return ""
