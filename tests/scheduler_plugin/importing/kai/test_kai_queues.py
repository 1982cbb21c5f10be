"""KAI's Queues, in the shape of its published examples."""

from __future__ import annotations

import pytest

from tests.scheduler_plugin.importing import translations
from tests.scheduler_plugin.importing.translations import GPU_CLASS, entries, said, sentence, specs

TREE = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: department}
spec:
  resources:
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
    memory: {quota: -1, limit: -1, overQuotaWeight: 1}
    gpu: {quota: 8, limit: -1, overQuotaWeight: 1}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec:
  parentQueue: department
  priority: 200
  preemptMinRuntime: 5m
  reclaimMinRuntime: 1h0m0s
  resources:
    gpu: {quota: 2, limit: 4, overQuotaWeight: 3}
"""


def a_queue(**spec: object) -> str:
    return str({"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"} | named("team", spec))


def named(name: str, spec: dict[str, object]) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": spec}


def test_a_tree_keeps_its_shape_and_numbers() -> None:
    found = translations.of(TREE, gpu_class=GPU_CLASS)

    assert found.findings == ()
    assert specs(found) == {
        "department": {
            "resources": [
                {"deviceClass": GPU_CLASS, "quota": 8, "limit": -1, "overQuotaWeight": 1}
            ],
        },
        "team": {
            "parent": "department",
            "namespaceSelector": {},
            "priority": 200,
            "preemptMinRuntime": "5m",
            "reclaimMinRuntime": "1h0m0s",
            "resources": [{"deviceClass": GPU_CLASS, "quota": 2, "limit": 4, "overQuotaWeight": 3}],
        },
    }


def test_without_the_class_of_gpus_they_are_reported() -> None:
    found = translations.of(TREE)

    assert said(found) == ["Queue/department spec.resources.gpu", "Queue/team spec.resources.gpu"]
    assert "--gpu-class" in found.findings[0].sentence
    assert "resources" not in specs(found)["team"]


@pytest.mark.parametrize(
    ("gpu", "entry"),
    [
        ({}, {"quota": 0, "limit": 0, "overQuotaWeight": 0}),
        ({"quota": -1, "limit": 4}, {"quota": -1, "limit": 4, "overQuotaWeight": 0}),
        ({"quota": -1, "limit": -1}, {"quota": -1, "limit": -1, "overQuotaWeight": 0}),
        ({"quota": 6, "limit": 4}, {"quota": 4, "limit": 4, "overQuotaWeight": 0}),
        ({"quota": 4, "limit": 4.0}, {"quota": 4, "limit": 4, "overQuotaWeight": 0}),
    ],
)
def test_absent_unlimited_and_crossed_amounts_mean_what_they_do_in_kai(
    gpu: dict[str, float], entry: dict[str, int]
) -> None:
    found = translations.of(a_queue(resources={"gpu": gpu}), gpu_class=GPU_CLASS)

    assert entries(found, "team") == [{"deviceClass": GPU_CLASS, **entry}]
    assert said(found) == []


def test_gpus_that_are_absent_beside_other_resources_are_none() -> None:
    unlimited = {"quota": -1, "limit": -1}
    found = translations.of(a_queue(resources={"cpu": unlimited}), gpu_class=GPU_CLASS)

    assert (entries(found, "team")[0]["limit"], found.findings) == (0, ())
    assert "resources" not in specs(translations.of(a_queue(), gpu_class=GPU_CLASS))["team"]


def test_parts_of_gpus_are_reported_and_rounded_down() -> None:
    gpu = {"quota": 2.5, "limit": 3.7, "overQuotaWeight": 1}
    found = translations.of(a_queue(resources={"gpu": gpu}), gpu_class=GPU_CLASS)

    (entry,) = entries(found, "team")
    assert (entry["quota"], entry["limit"]) == (2, 3)
    assert said(found) == [
        "Queue/team spec.resources.gpu.quota",
        "Queue/team spec.resources.gpu.limit",
    ]
    assert "2.5 GPUs" in sentence(found, "Queue/team", "spec.resources.gpu.quota")


def test_a_weight_of_0_says_that_it_forbids_more_than_the_quota() -> None:
    gpu = {"quota": 1, "limit": 2, "overQuotaWeight": 0}
    found = translations.of(a_queue(resources={"gpu": gpu}), gpu_class=GPU_CLASS)

    assert entries(found, "team")[0]["overQuotaWeight"] == 0
    assert said(found) == ["Queue/team spec.resources.gpu.overQuotaWeight"]


def test_parts_of_weights_keep_their_ratio() -> None:
    text = TREE.replace("overQuotaWeight: 3", "overQuotaWeight: 0.75")
    found = translations.of(text, gpu_class=GPU_CLASS)

    weights = {name: spec["resources"][0]["overQuotaWeight"] for name, spec in specs(found).items()}
    assert weights == {"department": 4, "team": 3}


def test_a_weight_too_large_is_reported() -> None:
    gpu = {"quota": 1, "limit": 2, "overQuotaWeight": 5_000_000}
    found = translations.of(a_queue(resources={"gpu": gpu}), gpu_class=GPU_CLASS)

    assert entries(found, "team")[0]["overQuotaWeight"] == 1_000_000
    assert said(found) == ["Queue/team spec.resources.gpu.overQuotaWeight"]


def test_what_nodes_have_is_reported_unless_it_is_unlimited() -> None:
    resources = {
        "gpu": {"quota": 1, "limit": 1},
        "cpu": {"quota": 1000, "limit": -1},
        "memory": {"quota": -1, "limit": -1},
    }
    found = translations.of(a_queue(resources=resources), gpu_class=GPU_CLASS)

    assert said(found) == ["Queue/team spec.resources.cpu"]


def test_names_for_people_and_unknown_fields_are_reported() -> None:
    found = translations.of(a_queue(displayName="Team", isNew={"a": 1}))

    assert said(found) == ["Queue/team spec.displayName", "Queue/team spec.isNew"]


@pytest.mark.parametrize(
    ("field", "value"), [("priority", -5), ("preemptMinRuntime", "soon"), ("priority", 10**10)]
)
def test_a_value_that_no_queue_has_is_reported_and_left_out(field: str, value: object) -> None:
    found = translations.of(a_queue(**{field: value}))

    assert field not in specs(found)["team"]
    assert f"Queue/team spec.{field}" in said(found)


def test_a_parent_that_is_elsewhere_stays_the_parent() -> None:
    assert specs(translations.of(a_queue(parentQueue="elsewhere")))["team"]["parent"] == "elsewhere"


def test_a_cycle_of_parents_is_cut_and_reported() -> None:
    text = TREE.replace("name: department}\nspec:", "name: department}\nspec:\n  parentQueue: team")
    found = translations.of(text, gpu_class=GPU_CLASS)

    assert all("parent" not in spec for spec in specs(found).values())
    assert said(found) == ["Queue/department spec.parentQueue", "Queue/team spec.parentQueue"]
