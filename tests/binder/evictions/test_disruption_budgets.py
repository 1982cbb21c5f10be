"""Whether budgets let a whole set of pods go at one time."""

from __future__ import annotations

from typing import Any

import pytest

from binder.evictions.disruption_budgets import CoveredPod, covered_pod, disruption_budget, too_many

READY = [{"type": "Ready", "status": "True"}]


def a_budget(allowed: int = 1, **selector: Any) -> dict[str, Any]:
    status = {"disruptionsAllowed": allowed}
    return {"metadata": {"name": "some"}, "spec": {"selector": selector}, "status": status}


def pods(*apps: str, is_ready: bool = True) -> list[CoveredPod]:
    return [CoveredPod(f"p{n}", {"app": app}, is_ready) for n, app in enumerate(apps)]


def said(budget: dict[str, Any], *apps: str, is_ready: bool = True) -> str:
    found = disruption_budget(budget)
    assert found is not None
    return too_many([found], pods(*apps, is_ready=is_ready))


def test_more_than_are_allowed_may_not_go_together() -> None:
    x = {"matchLabels": {"app": "x"}}

    assert said(a_budget(1, **x), "x", "y") == ""
    assert said(a_budget(2, **x), "x", "x", "y") == ""
    assert said(a_budget(1, **x), "x", "x") == (
        'PodDisruptionBudget "some" allows eviction of 1 of its pods now, and 2 would have to be'
        " evicted together."
    )


def test_a_budget_without_requirements_covers_all_and_one_without_a_selector_none() -> None:
    assert said(a_budget(), "x", "y")
    assert disruption_budget({"metadata": {"name": "some"}, "spec": {}}) is None


def test_expressions_select_too() -> None:
    expression = {"key": "app", "operator": "NotIn", "values": ["x"]}

    assert said(a_budget(0, matchExpressions=[expression]), "x") == ""
    assert said(a_budget(0, matchExpressions=[expression]), "y")


def test_pods_that_are_not_ready_count_for_none() -> None:
    assert said(a_budget(), "x", "y", is_ready=False) == ""


@pytest.mark.parametrize(
    ("phase", "conditions", "deletion", "is_ready"),
    [
        ("Running", READY, None, True),
        ("Pending", READY, None, False),
        ("Running", [], None, False),
        ("Running", [{"type": "Ready", "status": "False"}], None, False),
        ("Running", READY, "2026-11-21T12:00:00Z", False),
    ],
)
def test_a_pod_is_ready_that_runs_and_says_so(
    phase: str, conditions: list[Any], deletion: str | None, is_ready: bool
) -> None:
    pod = {
        "metadata": {"name": "p", "uid": "u", "deletionTimestamp": deletion},
        "status": {"phase": phase, "conditions": conditions},
    }

    assert covered_pod(pod).is_ready == is_ready
