"""What resources of Kueue's count: mappings, their sources, and extended resources."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_plugin.importing.api import Translation
from tests.scheduler_plugin.importing import translations
from tests.scheduler_plugin.importing.kueue.test_kueue_queues import a_cluster_queue, a_group
from tests.scheduler_plugin.importing.translations import GPU_CLASS, entries, said, sentence

DRIVER = "gpu.example.com"
SELECTED = 'device.attributes["gpu.example.com"].model == "H200"'
MAPPING = "Configuration resources.deviceClassMappings[0]"
OF_QUEUE = (
    "ClusterQueue/team-a spec.resourceGroups[0].coveredResources[0]"
    " spec.resourceGroups[0].flavors[0].resources[0]"
)


def a_source(kind: str, name: str, expression: str = SELECTED) -> dict[str, Any]:
    selector = {"cel": {"expression": expression}}
    return {kind: {"name": name, "driver": DRIVER, "deviceSelector": selector}}


def a_mapping(name: str, *classes: str, sources: list[Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "deviceClassNames": list(classes)}
    return {**found, "sources": sources} if sources is not None else found


def configured(*mappings: dict[str, Any]) -> str:
    found = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "resources": {"deviceClassMappings": list(mappings)},
    }
    return json.dumps(found)


def of_quota(quota: Any, resource: str, *texts: str, **options: Any) -> Translation:
    queue = a_cluster_queue(resourceGroups=[a_group(quota, resource=resource)])
    return translations.of(*texts, queue, **options)


def test_counter_based_quota_for_partitionable_devices() -> None:
    """Kueue's published example of counters."""
    mapping = a_mapping("gpu.memory", GPU_CLASS, sources=[a_source("counter", "memory")])
    found = of_quota("800Gi", "gpu.memory", configured(mapping))

    assert entries(found, "team-a") == [
        {
            "name": "gpu.memory",
            "deviceClass": GPU_CLASS,
            "selector": f'device.driver == "{DRIVER}" && ({SELECTED})',
            "measure": {"counter": {"set": "*", "name": "memory"}},
            "quota": "800Gi",
            "limit": "800Gi",
        }
    ]
    assert found.findings == ()


def test_capacity_based_quota_for_shared_devices() -> None:
    """Kueue's published example of consumable capacity."""
    source = a_source("capacity", "gpu.example.com/memory")
    mapping = a_mapping("example.com/memory", GPU_CLASS, sources=[source])
    found = of_quota("1.5Gi", "example.com/memory", configured(mapping))

    (entry,) = entries(found, "team-a")
    assert (entry["name"], entry["quota"]) == ("example.com-memory", "1536Mi")
    assert entry["measure"] == {"capacity": "gpu.example.com/memory"}
    assert found.findings == ()


def test_device_count_of_a_mapped_class() -> None:
    found = of_quota(8, "example.com/gpu", configured(a_mapping("example.com/gpu", GPU_CLASS)))

    assert entries(found, "team-a") == [{"deviceClass": GPU_CLASS, "quota": 8, "limit": 8}]


def test_a_source_without_a_selector_is_about_all_devices_of_its_driver() -> None:
    source = {"counter": {"name": "memory", "driver": DRIVER}}
    mapping = a_mapping("gpu.memory", GPU_CLASS, sources=[source])
    found = of_quota("80Gi", "gpu.memory", configured(mapping))

    assert entries(found, "team-a")[0]["selector"] == f'device.driver == "{DRIVER}"'


def test_one_class_is_counted_by_two_measures() -> None:
    found = translations.of(
        configured(
            a_mapping("gpu.memory", GPU_CLASS, sources=[a_source("counter", "memory")]),
            a_mapping("gpu.cores", GPU_CLASS, sources=[a_source("counter", "cores")]),
        ),
        a_cluster_queue(
            resourceGroups=[
                a_group("80Gi", resource="gpu.memory"),
                a_group(7, resource="gpu.cores"),
            ]
        ),
    )

    amounts = [(entry["name"], entry["limit"]) for entry in entries(found, "team-a")]
    assert amounts == [("gpu.memory", "80Gi"), ("gpu.cores", "7")]


@pytest.mark.parametrize(
    "mapping",
    [
        a_mapping("gpus", "a100.example.com", "h100.example.com"),
        a_mapping("gpus"),
        a_mapping("gpus", GPU_CLASS, sources=[a_source("counter", "a"), a_source("counter", "b")]),
        a_mapping("gpus", GPU_CLASS, sources=[{}]),
        a_mapping(
            "gpus", GPU_CLASS, sources=[{**a_source("counter", "a"), **a_source("capacity", "a")}]
        ),
        a_mapping("gpus", GPU_CLASS, sources=[{**a_source("counter", "a"), "partition": 1}]),
        a_mapping("gpus", "No/Class"),
        a_mapping("gpus", GPU_CLASS, sources=[a_source("counter", "a" * 64)]),
        a_mapping("gpus", GPU_CLASS, sources=[a_source("counter", "a", "x" * 11_000)]),
    ],
)
def test_a_mapping_that_no_entry_says_is_reported_with_its_quotas(mapping: dict[str, Any]) -> None:
    found = of_quota(8, "gpus", configured(mapping))

    assert set(said(found)) >= {MAPPING, OF_QUEUE}
    assert "resources" not in translations.specs(found)["team-a"]


def test_two_mappings_whose_entries_would_have_one_name_are_not_both_said() -> None:
    found = translations.of(
        configured(
            a_mapping("a/b", GPU_CLASS, sources=[a_source("counter", "memory")]),
            a_mapping("a-b", GPU_CLASS, sources=[a_source("counter", "cores")]),
        )
    )

    assert said(found) == ["Configuration resources.deviceClassMappings[1]"]


def test_two_resources_of_the_same_devices_are_not_both_said() -> None:
    groups = [a_group(4, resource="gpus"), a_group(2, resource="example.com/gpu")]
    found = translations.of(
        configured(a_mapping("gpus", GPU_CLASS)),
        a_cluster_queue(resourceGroups=groups),
        given={"example.com/gpu": GPU_CLASS},
    )

    assert entries(found, "team-a")[0]["quota"] == 4
    assert said(found) == [OF_QUEUE.replace("Groups[0]", "Groups[1]")]


A_CLASS = f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {GPU_CLASS}}}
spec: {{extendedResourceName: example.com/gpu, selectors: [{{cel: {{expression: "true"}}}}]}}
"""


@pytest.mark.parametrize(
    ("resource", "texts", "options"),
    [
        ("example.com/gpu", [A_CLASS], {}),
        ("example.com/gpu", [], {"given": {"example.com/gpu": GPU_CLASS}}),
        (
            "example.com/gpu",
            [A_CLASS.replace(GPU_CLASS, "other")],
            {"given": {"example.com/gpu": GPU_CLASS}},
        ),
        ("nvidia.com/gpu", [], {"gpu_class": GPU_CLASS}),
        (f"deviceclass.resource.kubernetes.io/{GPU_CLASS}", [], {}),
    ],
)
def test_an_extended_resource_counts_the_devices_of_its_class(
    resource: str, texts: list[str], options: dict[str, Any]
) -> None:
    found = of_quota(8, resource, *texts, **options)

    assert entries(found, "team-a") == [{"deviceClass": GPU_CLASS, "quota": 8, "limit": 8}]
    assert found.findings == ()


@pytest.mark.parametrize(
    ("resource", "texts", "word"),
    [
        ("pods", [], "no pods"),
        ("hugepages-2Mi", [], "no hugepages-2Mi"),
        ("example.com/gpu", [], "--device-class example.com/gpu=CLASS"),
        ("example.com/gpu", [A_CLASS, A_CLASS.replace(GPU_CLASS, "other")], "and other"),
    ],
)
def test_a_resource_without_a_class_is_reported(resource: str, texts: list[str], word: str) -> None:
    found = of_quota(8, resource, *texts)

    path = "spec.resourceGroups[0].coveredResources[0]"
    assert said(found) == [OF_QUEUE]
    assert word in sentence(found, "ClusterQueue/team-a", path)


def test_settings_of_the_manager_are_reported() -> None:
    text = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":8443"}
waitForPodsReady: {timeout: 5m}
resources:
  excludeResourcePrefixes: [networking.example.com]
  transformations: [{input: example.com/mig, strategy: Replace}]
"""
    assert said(translations.of(text)) == [
        "Configuration health metrics",
        "Configuration waitForPodsReady",
        "Configuration resources.excludeResourcePrefixes resources.transformations",
    ]


@pytest.mark.parametrize("quota", ["12E", 2**70])
def test_an_amount_beyond_what_a_queue_can_say_is_as_good_as_unlimited(quota: Any) -> None:
    mapping = a_mapping("gpu.memory", GPU_CLASS, sources=[a_source("counter", "memory")])
    measured = of_quota(quota, "gpu.memory", configured(mapping))
    counted = of_quota(quota, "example.com/gpu", A_CLASS)

    assert entries(measured, "team-a")[0]["limit"] == -1
    assert entries(counted, "team-a")[0] == {
        "deviceClass": GPU_CLASS,
        "quota": 2**63 - 1,
        "limit": -1,
    }
