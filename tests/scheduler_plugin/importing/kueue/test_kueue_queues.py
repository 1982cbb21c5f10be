"""Kueue's ClusterQueues, Cohorts and LocalQueues, in the shape of its published examples."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler_plugin.importing import translations
from tests.scheduler_plugin.importing.translations import GPU_CLASS, entries, said, sentence, specs

MAPPED = f"""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources:
  deviceClassMappings:
  - {{name: example.com/gpu, deviceClassNames: [{GPU_CLASS}]}}
"""
AS_MOORAGE = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
"""The policies of preemption that Moorage has."""


def a_cluster_queue(name: str = "team-a", gpus: Any = None, **spec: Any) -> str:
    found = {"preemption": AS_MOORAGE, **spec}
    if gpus is not None:
        found["resourceGroups"] = [a_group(gpus)]
    return an_object("ClusterQueue", name, found)


def a_group(*flavors: Any, resource: str = "example.com/gpu") -> dict[str, Any]:
    """A group of one resource; a flavor is a nominal quota, or several fields."""
    quotas = [each if isinstance(each, dict) else {"nominalQuota": each} for each in flavors]
    return {
        "coveredResources": [resource],
        "flavors": [
            {"name": f"flavor-{number}", "resources": [{"name": resource, **quota}]}
            for number, quota in enumerate(quotas)
        ],
    }


def an_object(
    kind: str, name: str, spec: Any, namespace: str = "", version: str = "v1beta2"
) -> str:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    found = {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }
    return str(found)


def a_local_queue(name: str, namespace: str, cluster_queue: str = "team-a", **spec: Any) -> str:
    return an_object("LocalQueue", name, {"clusterQueue": cluster_queue, **spec}, namespace)


def test_a_single_cluster_queue_setup_has_no_devices() -> None:
    """Kueue's example for administrators: cpu and memory alone."""
    group = {
        "coveredResources": ["cpu", "memory"],
        "flavors": [
            {
                "name": "default-flavor",
                "resources": [
                    {"name": "cpu", "nominalQuota": 9},
                    {"name": "memory", "nominalQuota": "36Gi"},
                ],
            }
        ],
    }
    found = translations.of(
        an_object("ResourceFlavor", "default-flavor", {}),
        a_cluster_queue("cluster-queue", namespaceSelector={}, resourceGroups=[group]),
        a_local_queue("user-queue", "default", "cluster-queue"),
    )

    assert specs(found) == {
        "cluster-queue": {
            "namespaceSelector": {
                "matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["default"]}
                ]
            }
        }
    }
    at = "spec.resourceGroups[0]"
    assert said(found) == [
        f"ClusterQueue/cluster-queue {at}.coveredResources[0] {at}.flavors[0].resources[0]",
        f"ClusterQueue/cluster-queue {at}.coveredResources[1] {at}.flavors[0].resources[1]",
        "LocalQueue/default/user-queue metadata.name",
    ]


def test_a_queue_without_a_cohort_never_exceeds_its_nominal_quota() -> None:
    found = translations.of(MAPPED, a_cluster_queue(gpus="8"))

    assert entries(found, "team-a") == [{"deviceClass": GPU_CLASS, "quota": 8, "limit": 8}]
    assert found.findings == ()


def test_a_cohort_that_is_only_a_name_bounds_its_members() -> None:
    found = translations.of(
        MAPPED,
        a_cluster_queue("team-a", {"nominalQuota": 6, "borrowingLimit": 2}, cohortName="research"),
        a_cluster_queue("team-b", 4, cohortName="research"),
    )

    assert list(specs(found)) == ["research", "team-a", "team-b"], "parents first"
    assert entries(found, "research") == [{"deviceClass": GPU_CLASS, "quota": 10, "limit": 10}]
    assert entries(found, "team-a") == [{"deviceClass": GPU_CLASS, "quota": 6, "limit": 8}]
    assert entries(found, "team-b") == [{"deviceClass": GPU_CLASS, "quota": 4, "limit": -1}]
    assert specs(found)["team-a"]["parent"] == "research"
    assert "namespaceSelector" not in specs(found)["research"]
    assert found.findings == ()


def test_cohorts_of_cohorts_have_the_sum_and_what_they_may_borrow() -> None:
    limited = a_group({"nominalQuota": 2, "borrowingLimit": 1})
    found = translations.of(
        MAPPED,
        an_object("Cohort", "root", {"resourceGroups": [a_group(3)]}),
        an_object("Cohort", "org", {"parentName": "root", "resourceGroups": [limited]}),
        an_object("Cohort", "other", {"parentName": "root"}),
        a_cluster_queue("team-a", 4, cohortName="org"),
        a_cluster_queue("team-b", 5, cohortName="other"),
    )

    amounts = {
        name: (spec["resources"][0]["quota"], spec["resources"][0]["limit"])
        for name, spec in specs(found).items()
    }
    assert amounts == {
        "root": (14, 14),
        "org": (6, 7),
        "other": (5, -1),
        "team-a": (4, -1),
        "team-b": (5, -1),
    }


def test_both_versions_name_the_cohort() -> None:
    old = a_cluster_queue("team-a", 1, cohort="research").replace("v1beta2", "v1beta1")

    assert specs(translations.of(MAPPED, old))["team-a"]["parent"] == "research"


def test_a_lending_limit_cannot_be_said_unless_all_may_be_lent() -> None:
    quotas = {"nominalQuota": 4, "lendingLimit": 3}
    kept = translations.of(MAPPED, a_cluster_queue("team-a", quotas, cohortName="research"))
    lent = translations.of(
        MAPPED, a_cluster_queue("team-a", {**quotas, "lendingLimit": 4}, cohortName="research")
    )

    path = "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit"
    assert said(kept) == [f"ClusterQueue/team-a {path}"]
    assert lent.findings == ()


def test_limits_of_lending_and_borrowing_without_a_cohort_are_reported() -> None:
    quotas = {"nominalQuota": 4, "lendingLimit": 3, "borrowingLimit": 2}
    found = translations.of(MAPPED, a_cluster_queue("team-a", quotas))

    at = "spec.resourceGroups[0].flavors[0].resources[0]"
    assert said(found) == [f"ClusterQueue/team-a {at}.borrowingLimit {at}.lendingLimit"]
    assert entries(found, "team-a")[0]["limit"] == 4


def test_quotas_of_several_flavors_are_added_up_and_reported() -> None:
    group = a_group({"nominalQuota": 4, "borrowingLimit": 1}, {"nominalQuota": 2})
    one = a_cluster_queue("team-a", cohortName="research", resourceGroups=[group])
    found = translations.of(MAPPED, one, a_cluster_queue("team-b", 4, cohortName="research"))

    assert entries(found, "team-a") == [{"deviceClass": GPU_CLASS, "quota": 6, "limit": -1}]
    at = "spec.resourceGroups[0].flavors"
    assert said(found) == [f"ClusterQueue/team-a {at}[0].resources[0] {at}[1].resources[0]"]


def test_what_a_flavor_says_of_nodes_is_reported() -> None:
    spec = {"nodeLabels": {"a": "b"}, "nodeTaints": [{"key": "a"}], "topologyName": "racks"}
    found = translations.of(an_object("ResourceFlavor", "h100", spec))

    assert said(found) == ["ResourceFlavor/h100 spec.nodeLabels spec.nodeTaints spec.topologyName"]


def test_a_queue_admits_nothing_that_it_does_not_cover() -> None:
    texts = a_cluster_queue("team-a", 4), a_cluster_queue("team-b", namespaceSelector={})
    blocked = translations.of(MAPPED, *texts)
    ignored = translations.of(MAPPED + "  quotaCheckStrategy: IgnoreUndeclared\n", *texts)

    assert entries(blocked, "team-b") == [{"deviceClass": GPU_CLASS, "quota": 0, "limit": 0}]
    assert "resources" not in specs(ignored)["team-b"]
    assert ignored.findings == ()


def test_a_class_that_is_mapped_and_that_no_queue_covers_is_admitted_nowhere() -> None:
    found = translations.of(MAPPED, a_cluster_queue("team-a"))

    assert entries(found, "team-a") == [{"deviceClass": GPU_CLASS, "quota": 0, "limit": 0}]


def test_names_that_a_queue_and_a_cohort_share_become_two() -> None:
    found = translations.of(MAPPED, a_cluster_queue("team-a", 4, cohortName="team-a"))

    assert specs(found)["team-a"]["parent"] == "cohort-team-a"
    assert said(found) == ["Cohort/team-a metadata.name"]


def test_a_name_too_long_is_shortened_and_reported() -> None:
    long = "a" * 70
    found = translations.of(
        MAPPED,
        a_cluster_queue(long, 4, cohortName=f"{long}-b"),
        a_cluster_queue(f"{long}-c", 4, cohortName=f"{long}-b"),
    )

    assert len(specs(found)) == 3
    assert said(found) == [
        f"ClusterQueue/{long} metadata.name",
        f"ClusterQueue/{long}-c metadata.name",
        f"Cohort/{long}-b metadata.name",
    ]


def test_a_cycle_of_cohorts_is_cut_and_reported() -> None:
    found = translations.of(
        MAPPED,
        an_object("Cohort", "a", {"parentName": "b"}),
        an_object("Cohort", "b", {"parentName": "a"}),
        a_cluster_queue("team-a", 4, cohortName="a"),
    )

    assert {name: spec.get("parent") for name, spec in specs(found).items()} == {
        "a": None,
        "b": None,
        "team-a": "a",
    }
    assert said(found) == ["Cohort/a spec.parentName", "Cohort/b spec.parentName"]


def test_namespaces_are_those_of_local_queues_that_the_selector_selects() -> None:
    selector = {"matchLabels": {"team": "a"}}
    found = translations.of(
        a_cluster_queue(namespaceSelector=selector),
        a_local_queue("team-a", "lab-2"),
        a_local_queue("team-a", "lab-1"),
    )

    only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["lab-1", "lab-2"]}
    assert specs(found)["team-a"]["namespaceSelector"] == {**selector, "matchExpressions": [only]}
    assert found.findings == ()


def test_without_local_queues_the_selector_is_the_queue_s_own() -> None:
    assert specs(translations.of(a_cluster_queue(namespaceSelector={})))["team-a"] == {
        "namespaceSelector": {}
    }
    assert specs(translations.of(a_cluster_queue()))["team-a"] == {}


def test_local_queues_say_how_pods_name_the_queue() -> None:
    found = translations.of(
        a_cluster_queue(namespaceSelector={}),
        a_local_queue("user-queue", "lab", fairSharing={"weight": 2}, stopPolicy="Hold"),
        a_local_queue("lost", "lab", "elsewhere"),
    )

    assert sorted(said(found)) == [
        "LocalQueue/lab/lost spec.clusterQueue",
        "LocalQueue/lab/user-queue metadata.name",
        "LocalQueue/lab/user-queue spec.fairSharing",
        "LocalQueue/lab/user-queue spec.stopPolicy",
    ]
    told = sentence(found, "LocalQueue/lab/user-queue", "metadata.name")
    assert told.endswith("kubectl label namespace lab moorage.dev/queue=team-a")


def test_a_local_queue_of_a_queue_that_admits_no_namespace_is_reported() -> None:
    found = translations.of(a_cluster_queue(), a_local_queue("team-a", "lab"))

    assert said(found) == ["LocalQueue/lab/team-a spec.clusterQueue"]
    assert "namespaceSelector" not in specs(found)["team-a"]


def test_more_namespaces_than_a_selector_has_room_for_are_reported() -> None:
    local = [a_local_queue("team-a", f"lab-{number}") for number in range(1001)]
    found = translations.of(a_cluster_queue(namespaceSelector={}), *local)

    assert said(found) == ["ClusterQueue/team-a spec.namespaceSelector"]


@pytest.mark.parametrize(
    ("preemption", "reported"),
    [
        ({}, ["reclaimWithinCohort", "withinClusterQueue"]),
        ({"reclaimWithinCohort": "Any"}, ["withinClusterQueue"]),
        ({**AS_MOORAGE, "reclaimWithinCohort": "LowerPriority"}, ["reclaimWithinCohort"]),
        (
            {**AS_MOORAGE, "withinClusterQueue": "LowerOrNewerEqualPriority"},
            ["withinClusterQueue"],
        ),
        ({**AS_MOORAGE, "borrowWithinCohort": {"policy": "Never"}}, []),
        (
            {
                **AS_MOORAGE,
                "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
            },
            ["borrowWithinCohort.maxPriorityThreshold borrowWithinCohort.policy"],
        ),
    ],
)
def test_preemption_that_differs_is_reported(
    preemption: dict[str, Any], reported: list[str]
) -> None:
    found = translations.of(
        MAPPED, a_cluster_queue("team-a", 4, cohortName="research", preemption=preemption)
    )

    paths = [each.replace("spec.preemption.", "") for each in said(found)]
    assert paths == [f"ClusterQueue/team-a {each}" for each in reported]


def test_preemption_in_a_cohort_means_nothing_without_one() -> None:
    found = translations.of(MAPPED, a_cluster_queue("team-a", 4, preemption={}))

    assert said(found) == ["ClusterQueue/team-a spec.preemption.withinClusterQueue"]


FAIR = "fairSharing: {preemptionStrategies: [LessThanInitialShare]}\n"


def test_weights_keep_their_ratio_where_fair_sharing_is_enabled() -> None:
    texts = (
        an_object("Cohort", "a", {"parentName": "root", "fairSharing": {"weight": "0.75"}}),
        an_object("Cohort", "b", {"parentName": "root", "fairSharing": {"weight": "250m"}}),
        a_cluster_queue("team-a", 4, cohortName="a"),
        a_cluster_queue("team-b", 4, cohortName="b"),
    )
    known = translations.of(MAPPED, *texts)
    enabled = translations.of(MAPPED + FAIR, *texts)

    weights = {
        name: spec["resources"][0].get("overQuotaWeight") for name, spec in specs(enabled).items()
    }
    assert weights == {"root": 4, "a": 3, "b": 1, "team-a": 4, "team-b": 4}
    assert said(enabled) == ["Configuration fairSharing"]
    assert said(known) == ["Cohort/a spec.fairSharing.weight", "Cohort/b spec.fairSharing.weight"]
    assert "overQuotaWeight" not in entries(known, "a")[0]


def test_a_weight_of_0_and_one_of_several_entries_are_reported() -> None:
    memory = {"name": "gpu.memory", "deviceClassNames": ["b"], "sources": []}
    configuration = MAPPED + f"  - {memory}\n" + FAIR
    groups = [a_group(4), a_group(4, resource="gpu.memory")]
    last = translations.of(configuration, a_cluster_queue("a", 4, fairSharing={"weight": 0}))
    two = translations.of(
        configuration, a_cluster_queue("a", resourceGroups=groups, fairSharing={"weight": 2})
    )

    weight = "ClusterQueue/a spec.fairSharing.weight"
    assert weight in said(last)
    assert weight in said(two)
    assert "overQuotaWeight" not in entries(last, "a")[0]
    assert [entry["overQuotaWeight"] for entry in entries(two, "a")] == [2, 2]


def test_a_weight_without_an_entry_is_reported() -> None:
    found = translations.of(a_cluster_queue("a", fairSharing={"weight": 2}))

    assert said(found) == ["ClusterQueue/a spec.fairSharing.weight"]


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("queueingStrategy", "StrictFIFO", "queueingStrategy"),
        ("stopPolicy", "HoldAndDrain", "stopPolicy"),
        ("admissionChecks", ["prov"], "admissionChecks"),
        ("admissionChecksStrategy", {"admissionChecks": [{"name": "prov"}]}, ""),
        ("admissionScope", {"admissionMode": "UsageBasedAdmissionFairSharing"}, ""),
        ("concurrentAdmissionPolicy", {"migration": {"mode": "RetainFirstAdmission"}}, ""),
        (
            "flavorFungibility",
            {"whenCanBorrow": "TryNextFlavor"},
            "flavorFungibility.whenCanBorrow",
        ),
        ("flavorFungibility", {"preference": "x"}, "flavorFungibility.preference"),
        ("ofTomorrow", 1, "ofTomorrow"),
    ],
)
def test_what_a_queue_does_not_do_is_reported(field: str, value: Any, path: str) -> None:
    found = translations.of(a_cluster_queue(**{field: value}))

    assert said(found) == [f"ClusterQueue/team-a spec.{path or field}"]


@pytest.mark.parametrize(
    "spec",
    [
        {"queueingStrategy": "BestEffortFIFO"},
        {"stopPolicy": "None"},
        {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}},
        {"flavorFungibility": {"whenCanBorrow": "MayStopSearch"}},
    ],
)
def test_defaults_that_mean_what_moorage_does_are_not_reported(spec: dict[str, Any]) -> None:
    assert translations.of(a_cluster_queue(**spec)).findings == ()
