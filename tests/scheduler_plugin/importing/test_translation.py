"""Documents of all forms, and what is no queue of KAI or Kueue."""

from __future__ import annotations

import json

import pytest
import yaml

from scheduler_plugin.importing.api import NotValidError
from tests.scheduler_plugin.importing import translations
from tests.scheduler_plugin.importing.kueue.test_kueue_queues import (
    MAPPED,
    a_cluster_queue,
    a_local_queue,
)
from tests.scheduler_plugin.importing.translations import entries, said, specs

QUEUE = a_cluster_queue("team-a", 4)


def a_list(kind: str, *items: object) -> str:
    version = "v1" if kind == "List" else "kueue.x-k8s.io/v1beta2"
    return str({"apiVersion": version, "kind": kind, "items": list(items)})


def test_objects_of_lists_are_read() -> None:
    body = yaml.safe_load(QUEUE)
    bare = {"metadata": body["metadata"], "spec": body["spec"]}

    expected = specs(translations.of(MAPPED, QUEUE))
    assert specs(translations.of(MAPPED, a_list("List", body))) == expected
    assert specs(translations.of(MAPPED, a_list("ClusterQueueList", bare))) == expected
    assert specs(translations.of("", MAPPED, a_list("List", yaml.safe_load(a_list("List", body)))))


def test_the_configuration_is_found_in_its_config_map() -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": MAPPED},
    }
    found = translations.of(json.dumps(config_map), QUEUE)

    assert entries(found, "team-a")[0]["quota"] == 4
    assert found.findings == ()


def test_objects_of_other_kinds_are_reported() -> None:
    found = translations.of(
        str({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}),
        str({"apiVersion": "moorage.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "c"}}),
        str({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck"}),
    )

    assert [str(each) for each in found.findings] == [
        "ConfigMap/b/a: Objects of this kind are not read.",
        "Queue/c: Objects of this kind are not read.",
        "AdmissionCheck: Objects of this kind are not read.",
    ]
    assert found.queues == ()


def test_labels_and_annotations_of_users_are_reported() -> None:
    body = yaml.safe_load(a_cluster_queue("a"))
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    body["metadata"] |= {"uid": "1", "resourceVersion": "2", "annotations": {applied: "{}"}}
    quiet = translations.of(str(body))
    body["metadata"] |= {"labels": {"team": "a"}, "annotations": {"owner": "b"}}

    assert quiet.findings == ()
    assert said(translations.of(str(body))) == [
        "ClusterQueue/a metadata.labels metadata.annotations"
    ]


def test_the_status_is_no_input() -> None:
    body = yaml.safe_load(a_cluster_queue("a")) | {"status": {"pendingWorkloads": 3}}

    assert translations.of(str(body)).findings == ()


def test_of_an_object_that_is_given_twice_the_last_counts() -> None:
    found = translations.of(MAPPED, QUEUE, a_cluster_queue("team-a", 6))

    assert entries(found, "team-a")[0]["quota"] == 6
    assert said(found) == ["ClusterQueue/team-a metadata.name"]


def test_queues_of_both_projects_are_read_together() -> None:
    kai = str(
        {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": "team-a"},
            "spec": {},
        }
    )
    found = translations.of(MAPPED, QUEUE, kai)

    assert list(specs(found)) == ["clusterqueue-team-a", "team-a"]
    assert said(found) == ["ClusterQueue/team-a metadata.name"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "Each document must be an object."),
        ("{kind: Queue}", "Each object must have a kind and an apiVersion."),
        (
            a_cluster_queue(resourceGroups=[{"flavors": [{"name": 3}]}]),
            "ClusterQueue/team-a spec.resourceGroups[0].flavors[0].name:"
            " Input should be a valid string.",
        ),
        (
            a_cluster_queue(gpus=-1),
            "ClusterQueue/team-a spec.resourceGroups[0].flavors[0].resources[0].nominalQuota:"
            " Must be a quantity of at least 0.",
        ),
        (a_cluster_queue(gpus=True), "Must be a quantity of at least 0."),
        (a_cluster_queue(name=""), "ClusterQueue metadata.name: Field required."),
        (a_local_queue("a", ""), "LocalQueue/a metadata.namespace: Field required."),
        (
            "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: a},"
            " spec: {resources: {gpu: {quota: -2}}}}",
            "Queue/a spec.resources.gpu.quota:"
            " Must be a number or a quantity of at least 0, or -1.",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, data: {controller_manager_config.yaml: '{'}}",
            "ConfigMap data[controller_manager_config.yaml]:",
        ),
        (
            a_cluster_queue(namespaceSelector={"matchLabels": {"a": "b" * 64}}),
            "ClusterQueue/team-a spec.namespaceSelector.matchLabels",
        ),
    ],
)
def test_what_is_not_valid_is_refused_with_its_path(text: str, problem: str) -> None:
    with pytest.raises(NotValidError) as refused:
        translations.of(text)

    assert problem in refused.value.problems[0]


def test_all_problems_are_found_at_once() -> None:
    with pytest.raises(NotValidError) as refused:
        translations.of(a_cluster_queue("a", gpus=-1), a_cluster_queue("b", gpus="many"))

    assert len(refused.value.problems) == 2


def test_a_queue_that_would_not_be_valid_is_refused() -> None:
    """A hundred requirements are the most, and the names of namespaces are one more."""
    requirements = [{"key": f"a{number}", "operator": "Exists"} for number in range(100)]
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "a", "namespace": "lab"},
        "spec": {"clusterQueue": "team-a"},
    }
    with pytest.raises(
        NotValidError, match=r"the Queue would not be valid: spec\.namespaceSelector"
    ):
        translations.of(
            a_cluster_queue(namespaceSelector={"matchExpressions": requirements}), str(local)
        )
