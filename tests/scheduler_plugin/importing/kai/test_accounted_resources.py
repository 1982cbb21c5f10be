"""The use cases of KAI's proposal of AccountedResources, by the names that it gives them."""

from __future__ import annotations

import json

import pytest

from scheduler_plugin.importing.api import Translation
from tests.scheduler_plugin.importing import translations
from tests.scheduler_plugin.importing.translations import GPU_CLASS, entries, said, sentence, specs

JsonObject = dict[str, object]

OF_CLASS: JsonObject = {"dra": {"deviceClassName": GPU_CLASS}}
ON_H200: JsonObject = {"match": {"nodeLabels": {"example.com/gpu.product": "H200"}}}
MEMORY: JsonObject = {"quantity": {"dra": {"selectedCapacity": {"capacityName": "memory"}}}}
PINNED: JsonObject = {
    "quantity": {
        "dra": {"opaqueConfigField": {"driver": GPU_CLASS, "path": "sharing.limit", "unit": "Mi"}}
    }
}
ANNOTATED: JsonObject = {"podAnnotation": {"key": "gpu-memory", "unit": "Mi"}}


def of_attributes(**attributes: object) -> JsonObject:
    return {**OF_CLASS, "match": {"dra": {"deviceAttributes": attributes}}}


def resource(name: str, *sources: JsonObject, limit: str = "-1") -> str:
    spec = {"defaults": {"limit": limit}, "sources": list(sources)}
    found = {
        "apiVersion": "scheduling.run.ai/v1alpha1",
        "kind": "AccountedResource",
        "metadata": {"name": name},
        "spec": spec,
    }
    return json.dumps(found)


def queue(name: str, parent: str = "", **limits: str) -> str:
    listed = [
        {"resourceRef": ref.replace("_", "-"), "limit": limit} for ref, limit in limits.items()
    ]
    found = {
        "apiVersion": "scheduling.run.ai/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parentQueue": parent, "accountedResources": listed},
    }
    return json.dumps(found)


def limits_of(found: Translation, name: str) -> dict[str, object]:
    return {entry["name"]: entry["limit"] for entry in specs(found)[name].get("resources", ())}


def test_generic_gpu_limit_plus_per_type_limits() -> None:
    """Types are told by attributes of devices, and not by labels of nodes."""
    found = translations.of(
        resource("gpu", {"resourceName": "nvidia.com/gpu"}),
        resource("gpu-gb200", of_attributes(productName={"string": "GB200"})),
        resource("gpu-h200", {"resourceName": "nvidia.com/gpu", **ON_H200}),
        queue("team-a", gpu="16", gpu_gb200="4", gpu_h200="4"),
        given={"nvidia.com/gpu": GPU_CLASS},
    )

    assert entries(found, "team-a") == [
        {"name": "gpu", "deviceClass": GPU_CLASS, "quota": -1, "limit": 16},
        {
            "name": "gpu-gb200",
            "deviceClass": GPU_CLASS,
            "selector": "device.driver in device.attributes"
            ' && "productName" in device.attributes[device.driver]'
            ' && device.attributes[device.driver]["productName"] == "GB200"',
            "quota": -1,
            "limit": 4,
        },
    ]
    assert said(found) == [
        "AccountedResource/gpu-h200 spec.sources[0].match.nodeLabels",
        "Queue/team-a spec.accountedResources[2]",
    ]


def test_gpu_memory_limit() -> None:
    found = translations.of(
        resource("gpu-memory", {**OF_CLASS, **MEMORY}, {**OF_CLASS, **PINNED}, ANNOTATED),
        queue("team-a", gpu_memory="320Gi"),
    )

    assert entries(found, "team-a") == [
        {
            "name": "gpu-memory",
            "deviceClass": GPU_CLASS,
            "measure": {"capacity": "memory"},
            "quota": -1,
            "limit": "320Gi",
        }
    ]
    assert said(found) == [
        "AccountedResource/gpu-memory spec.sources[1].quantity.dra.opaqueConfigField",
        "AccountedResource/gpu-memory spec.sources[2].podAnnotation",
    ]


def test_fractional_gpu_limit() -> None:
    """Fractions are of whole GPUs that no claim names."""
    found = translations.of(
        resource("gpu-h200", {"resourceName": "nvidia.com/gpu", **ON_H200}),
        queue("team-a", gpu_h200="2"),
    )

    assert limits_of(found, "team-a") == {}
    assert "attributes" in sentence(
        found, "AccountedResource/gpu-h200", "spec.sources[0].match.nodeLabels"
    )


def test_gpu_memory_and_gpu_compute_limits() -> None:
    compute: JsonObject = {"podAnnotation": {"key": "gpu-compute", "unit": "percent"}}
    found = translations.of(
        resource("gpu-memory", ANNOTATED),
        resource("gpu-compute", compute),
        queue("team-a", gpu_memory="320Gi", gpu_compute="400"),
    )

    assert limits_of(found, "team-a") == {}
    assert said(found) == [
        "AccountedResource/gpu-memory spec.sources[0].podAnnotation",
        "AccountedResource/gpu-compute spec.sources[0].podAnnotation",
        "Queue/team-a spec.accountedResources[0] spec.accountedResources[1]",
    ]


def test_extended_resource_limit() -> None:
    texts = resource("efa", {"resourceName": "example.com/efa"}), queue("team-a", efa="32")

    known = translations.of(*texts, given={"example.com/efa": "efa.example.com"})
    unknown = translations.of(*texts)

    assert entries(known, "team-a") == [
        {"name": "efa", "deviceClass": "efa.example.com", "quota": -1, "limit": 32}
    ]
    assert known.findings == ()
    assert said(unknown) == [
        "AccountedResource/efa spec.sources[0].resourceName",
        "Queue/team-a spec.accountedResources[0]",
    ]
    assert "--device-class example.com/efa=CLASS" in unknown.findings[0].sentence


def test_hierarchical_queues_have_the_default_where_they_list_nothing() -> None:
    found = translations.of(
        resource("gpu", OF_CLASS, limit="12"),
        queue("research", gpu="10"),
        queue("ml", "research", gpu="8"),
        queue("cv", "research"),
        queue("free", "research", gpu="-1"),
    )

    limits = {name: limits_of(found, name) for name in ("research", "ml", "cv", "free")}
    assert limits == {"research": {"gpu": 10}, "ml": {"gpu": 8}, "cv": {"gpu": 12}, "free": {}}


def test_a_resource_with_two_sources_of_the_same_devices_is_one_entry() -> None:
    found = translations.of(
        resource("gpu", {"resourceName": "nvidia.com/gpu"}, OF_CLASS),
        queue("team-a", gpu="4"),
        gpu_class=GPU_CLASS,
    )

    assert entries(found, "team-a") == [
        {"name": "gpu", "deviceClass": GPU_CLASS, "quota": -1, "limit": 4}
    ]
    assert said(found) == []


def test_a_sum_of_different_devices_cannot_be_said() -> None:
    other: JsonObject = {"dra": {"deviceClassName": "other.example.com"}}
    found = translations.of(resource("gpu", OF_CLASS, other), queue("team-a", gpu="4"))

    assert limits_of(found, "team-a") == {}
    assert said(found) == [
        "AccountedResource/gpu spec.sources[0] spec.sources[1]",
        "Queue/team-a spec.accountedResources[0]",
    ]


@pytest.mark.parametrize(
    ("attribute", "value", "condition"),
    [
        ("mig", {"bool": True}, "== true"),
        ("index", {"int": 7}, "== 7"),
        ("model", {"string": 'a"b'}, r'== "a\"b"'),
    ],
)
def test_attributes_of_all_types_select(attribute: str, value: JsonObject, condition: str) -> None:
    found = translations.of(
        resource("gpu", of_attributes(**{attribute: value})), queue("team-a", gpu="4")
    )

    assert entries(found, "team-a")[0]["selector"].endswith(
        f'device.attributes[device.driver]["{attribute}"] {condition}'
    )


def test_an_attribute_with_a_domain_is_looked_up_there() -> None:
    source = of_attributes(**{"other.example.com/model": {"string": "x"}})
    found = translations.of(resource("gpu", source), queue("team-a", gpu="4"))

    assert entries(found, "team-a")[0]["selector"] == (
        '"other.example.com" in device.attributes'
        ' && "model" in device.attributes["other.example.com"]'
        ' && device.attributes["other.example.com"]["model"] == "x"'
    )


@pytest.mark.parametrize("value", [{"version": "1.2.3"}, {}, {"string": "a", "int": 1}])
def test_an_attribute_that_no_selector_compares_is_reported(value: JsonObject) -> None:
    found = translations.of(
        resource("gpu", of_attributes(productName=value)), queue("team-a", gpu="4")
    )

    path = "spec.sources[0].match.dra.deviceAttributes[productName]"
    assert said(found)[0] == f"AccountedResource/gpu {path}"


@pytest.mark.parametrize("source", [{}, {**OF_CLASS, "resourceName": "example.com/gpu"}])
def test_a_source_of_no_kind_or_of_two_is_reported(source: JsonObject) -> None:
    found = translations.of(resource("gpu", source), queue("team-a", gpu="4"))

    assert said(found)[0] == "AccountedResource/gpu spec.sources[0]"


def test_a_field_that_the_proposal_does_not_have_is_reported() -> None:
    found = translations.of(resource("gpu", {**OF_CLASS, "weight": 2}), queue("team-a", gpu="4"))

    assert said(found)[0] == "AccountedResource/gpu spec.sources[0].weight"
    assert limits_of(found, "team-a") == {}


def test_the_name_of_a_resource_is_the_class_of_gpus_and_counts_something_else() -> None:
    found = translations.of(
        resource(GPU_CLASS, {**OF_CLASS, **MEMORY}), queue("team-a"), gpu_class=GPU_CLASS
    )

    assert said(found) == [f"AccountedResource/{GPU_CLASS} metadata.name"]
