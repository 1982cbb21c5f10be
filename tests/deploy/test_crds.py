"""The definitions: of all that they are whole; of Akri's kinds that they say what Akri's do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kube.shapes.times import parse_duration
from tests.deploy.documents import CRDS, documents_in, schema_nodes
from tests.schema_objects import pattern_of

NAMES = ("configurations.akri.sh", "instances.akri.sh")
EACH = pytest.mark.parametrize("name", [*NAMES, "queues.moorage.dev"])


def definition(name: str) -> Any:
    (document,) = documents_in(CRDS)[CRDS / f"{name}.yaml"]
    return document


def version(name: str) -> Any:
    (only,) = definition(name)["spec"]["versions"]
    return only


def spec_schema(name: str) -> Any:
    return version(name)["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_the_folder_holds_nothing_else() -> None:
    assert [path.stem for path in documents_in(CRDS)] == [*NAMES, "queues.moorage.dev"]


@pytest.mark.parametrize(
    ("name", "kind", "short_name"),
    [(NAMES[0], "Configuration", "akric"), (NAMES[1], "Instance", "akrii")],
)
def test_names_are_akris(name: str, kind: str, short_name: str) -> None:
    spec = definition(name)["spec"]

    assert definition(name)["metadata"]["name"] == name
    assert f"{spec['names']['plural']}.{spec['group']}" == name
    assert spec["scope"] == "Namespaced"
    assert spec["names"]["kind"] == kind
    assert spec["names"]["shortNames"] == [short_name]
    assert spec["names"]["categories"] == ["all"]
    assert version(name)["name"] == "v0"


@EACH
def test_every_field_has_a_type_and_a_description(name: str) -> None:
    nodes = list(schema_nodes(version(name)["schema"]["openAPIV3Schema"]))

    untyped = [path for path, node in nodes if "type" not in node]
    assert untyped == [path for path, node in nodes if "x-kubernetes-int-or-string" in node]
    values = {path for path, _ in nodes if path.endswith("[]")}
    undescribed = [path for path, node in nodes if "description" not in node]
    assert [path for path in undescribed if path not in values] == []


@EACH
def test_schemas_are_structural(name: str) -> None:
    for path, node in schema_nodes(version(name)["schema"]["openAPIV3Schema"]):
        assert not {"properties", "additionalProperties"} <= node.keys(), path
        assert node.get("type") != "array" or "items" in node, path
        for alternative in node.get("oneOf", ()):
            assert alternative.keys() <= {"required"}, path
        assert set(node.get("required", ())) <= node.get("properties", {}).keys(), path


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        (NAMES[0], ["Handler", "Capacity", "Accepted", "Age"]),
        (NAMES[1], ["Config", "Shared", "Nodes", "Age"]),
    ],
)
def test_columns_that_kubectl_shows(name: str, columns: list[str]) -> None:
    assert [column["name"] for column in version(name)["additionalPrinterColumns"]] == columns


def test_a_configuration_has_akris_fields_and_ours() -> None:
    assert spec_schema(NAMES[0])["properties"].keys() == {
        "discoveryHandler",
        "capacity",
        "brokerSpec",
        "instanceServiceSpec",
        "configurationServiceSpec",
        "brokerProperties",
        "uniqueDevices",
        "offlineGracePeriod",
        "offlineTaintEffect",
        "maxBrokers",
        "attributes",
    }


def test_an_instance_has_akris_fields() -> None:
    assert spec_schema(NAMES[1])["properties"].keys() == {
        "configurationName",
        "cdiName",
        "capacity",
        "brokerProperties",
        "shared",
        "nodes",
        "deviceUsage",
    }


def test_nothing_of_a_configuration_is_required_or_defaulted() -> None:
    """The driver says what is missing; a default would hide what the user wrote."""
    spec = spec_schema(NAMES[0])

    assert "required" not in spec
    assert "required" not in spec["properties"]["discoveryHandler"]
    assert [path for path, node in schema_nodes(spec) if "default" in node] == []


def test_any_whole_number_is_a_capacity() -> None:
    capacity = spec_schema(NAMES[0])["properties"]["capacity"]

    assert capacity.keys() == {"type", "description"}


def test_specs_of_workloads_keep_unknown_fields() -> None:
    properties = spec_schema(NAMES[0])["properties"]
    broker = properties["brokerSpec"]["properties"]

    for schema in (
        properties["brokerSpec"],
        broker["brokerPodSpec"],
        broker["brokerJobSpec"],
        properties["instanceServiceSpec"],
        properties["configurationServiceSpec"],
    ):
        assert schema["x-kubernetes-preserve-unknown-fields"] is True
        assert schema["nullable"] is True


def test_each_node_owns_its_entries_of_an_instance() -> None:
    properties = spec_schema(NAMES[1])["properties"]

    assert properties["nodes"]["x-kubernetes-list-type"] == "set"
    assert properties["deviceUsage"]["x-kubernetes-map-type"] == "granular"


def test_only_configurations_have_a_status() -> None:
    assert version(NAMES[0])["subresources"] == {"status": {}}
    assert "subresources" not in version(NAMES[1])


@pytest.mark.parametrize("text", ["0", "30s", "5m", "1h30m", "1.5h", "250ms", "10us"])
def test_grace_periods_that_the_driver_reads_are_admitted(text: str) -> None:
    pattern = pattern_of(spec_schema(NAMES[0])["properties"]["offlineGracePeriod"])

    assert parse_duration(text) is not None
    assert re.search(pattern, text)


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5m", "5d", "m5", "5m ", "10ns", "0m0"])
def test_grace_periods_that_the_driver_does_not_read_are_not(text: str) -> None:
    pattern = pattern_of(spec_schema(NAMES[0])["properties"]["offlineGracePeriod"])

    assert parse_duration(text) is None
    assert not re.search(pattern, text)


def test_what_is_no_grace_period_is_refused_in_words() -> None:
    field = spec_schema(NAMES[0])["properties"]["offlineGracePeriod"]
    (only,) = field["x-kubernetes-validations"]

    assert "pattern" not in field
    words = "is no duration; write it like 90s, 5m or 1h30m"
    assert (only["message"], only["messageExpression"]) == (
        f"it {words}",
        f"""'"' + self + '" {words}'""",
    )
