"""The definition of the Queue: what one object can get wrong is refused, and nothing is hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kube.shapes.times import parse_duration
from tests.deploy.documents import CRDS, documents_in, schema_nodes
from tests.schema_objects import pattern_of

NAME = "queues.moorage.dev"


def definition() -> Any:
    (document,) = documents_in(CRDS)[CRDS / f"{NAME}.yaml"]
    return document


def version() -> Any:
    (only,) = definition()["spec"]["versions"]
    return only


def schema(*path: str) -> Any:
    """The schema of a field; "[]" is the entry of a list."""
    found = version()["schema"]["openAPIV3Schema"]
    for step in path:
        found = found["items"] if step == "[]" else found["properties"][step]
    return found


def nodes_below(*path: str) -> Iterator[tuple[str, Any]]:
    return schema_nodes(schema(*path))


def test_it_is_a_kind_of_the_whole_cluster() -> None:
    spec = definition()["spec"]

    assert definition()["metadata"]["name"] == NAME
    assert f"{spec['names']['plural']}.{spec['group']}" == NAME
    assert spec["scope"] == "Cluster"
    assert spec["names"]["kind"] == "Queue"
    assert version()["name"] == "v1alpha1"
    assert version()["subresources"] == {"status": {}}


def test_lists_have_an_end_and_a_kind() -> None:
    """Without an end the API server cannot tell what a rule about the entries may cost."""
    for path, node in nodes_below("spec"):
        if node.get("type") == "array":
            assert "maxItems" in node, path
            assert node["x-kubernetes-list-type"] in ("atomic", "map", "set"), path


def test_the_columns_that_kubectl_shows() -> None:
    columns = version()["additionalPrinterColumns"]

    shown = [column["name"] for column in columns if not column.get("priority")]
    wide = [column["name"] for column in columns if column.get("priority")]
    assert shown == ["Parent", "Usage/Quota/Limit", "Waiting", "Accepted", "Age"]
    assert wide == ["Owned", "Shared", "Priority"]


def test_no_column_shows_a_map_or_a_list() -> None:
    """These kubectl would show as JSON."""
    for column in version()["additionalPrinterColumns"]:
        path = column["jsonPath"].split("[")[0].removeprefix(".").split(".")
        if path[0] != "metadata" and path[-1] != "conditions":
            assert schema(*path)["type"] == column["type"], column


def test_the_fields_are_those_of_the_design() -> None:
    assert schema("spec")["properties"].keys() == {
        "parent",
        "namespaceSelector",
        "claimSharing",
        "priority",
        "preemptMinRuntime",
        "reclaimMinRuntime",
        "resources",
    }
    assert schema("spec", "claimSharing")["properties"].keys() == {
        "policy",
        "queues",
        "onOwnerExit",
        "ownerExitGracePeriod",
        "evictForeign",
        "labelAtCreate",
    }
    assert schema("status")["properties"].keys() == {
        "observedGeneration",
        "usage",
        "usageNonPreemptible",
        "requested",
        "share",
        "reclaimable",
        "held",
        "claims",
        "summary",
        "waiting",
        "conditions",
    }


def test_what_is_inherited_has_no_default() -> None:
    """A default would be there before the parent could be asked, and be shown by `kubectl get`."""
    defaults = {path: node["default"] for path, node in nodes_below() if "default" in node}

    assert defaults == {
        ".spec.priority": 100,
        ".spec.resources[].name": "",
        ".spec.resources[].deviceClass": "",
        ".spec.resources[].quota": 0,
        ".spec.resources[].limit": -1,
    }


def test_a_queue_needs_no_field() -> None:
    assert "required" not in schema()
    assert "required" not in schema("spec")
    assert "required" not in schema("spec", "claimSharing")


def test_words_are_those_of_the_design() -> None:
    for field in ("policy", "evictForeign", "labelAtCreate"):
        assert schema("spec", "claimSharing", field)["enum"] == ["Allow", "Deny"]
    assert schema("spec", "claimSharing", "onOwnerExit")["enum"] == ["Keep", "Evict"]


def test_an_entry_is_listed_once() -> None:
    resources = schema("spec", "resources")

    assert resources["x-kubernetes-list-type"] == "map"
    assert resources["x-kubernetes-list-map-keys"] == ["deviceClass", "name"]


@pytest.mark.parametrize("field", ["quota", "limit"])
def test_ceilings_are_numbers_or_quantities(field: str) -> None:
    amount = schema("spec", "resources", "[]", field)

    assert amount["x-kubernetes-int-or-string"]
    assert "type" not in amount


@pytest.mark.parametrize("field", ["usage", "usageNonPreemptible", "requested"])
def test_what_is_charged_is_a_map_of_amounts(field: str) -> None:
    assert schema("status", field)["additionalProperties"] == {"x-kubernetes-int-or-string": True}


def test_conditions_are_a_map_by_type() -> None:
    conditions = schema("status", "conditions")

    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize(
    "path", [("parent",), ("claimSharing", "queues", "[]"), ("resources", "[]", "deviceClass")]
)
def test_names_are_names_of_objects(path: tuple[str, ...]) -> None:
    pattern = schema("spec", *path)["pattern"]

    for name in ("vision", "team-a.vision", "0"):
        assert re.search(pattern, name)
    for name in ("Vision", "a_b", "-a", "a-", "a..b", "a b"):
        assert not re.search(pattern, name)


def test_only_a_parent_may_be_empty() -> None:
    assert re.search(schema("spec", "parent")["pattern"], "")
    assert not re.search(schema("spec", "claimSharing", "queues", "[]")["pattern"], "")


@pytest.mark.parametrize("text", ["0", "30s", "5m", "1h30m", "1.5h", "250ms"])
def test_grace_periods_of_sense_are_admitted(text: str) -> None:
    pattern = pattern_of(schema("spec", "claimSharing", "ownerExitGracePeriod"))

    assert parse_duration(text) is not None
    assert re.search(pattern, text)


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5m", "5d", "m5", "5m ", "10ns", "0m0", "10us"])
def test_grace_periods_of_no_sense_are_not(text: str) -> None:
    pattern = pattern_of(schema("spec", "claimSharing", "ownerExitGracePeriod"))

    assert not re.search(pattern, text)


DURATIONS = (
    ("preemptMinRuntime",),
    ("reclaimMinRuntime",),
    ("claimSharing", "ownerExitGracePeriod"),
)


@pytest.mark.parametrize("path", DURATIONS)
def test_what_is_no_duration_is_refused_in_words(path: tuple[str, ...]) -> None:
    """A `pattern` would be shown as it is; the rules hold while no webhook answers."""
    field = schema("spec", *path)
    first, second = field["x-kubernetes-validations"]

    assert "pattern" not in field
    words = "is no duration; write it like 90s, 5m or 1h30m"
    assert first["message"] == f"it {words}"
    assert first["messageExpression"] == f"""'"' + self + '" {words}'"""
    assert second["rule"] == f"!{first['rule']} || duration(self) <= duration('8784h')"
    assert second["message"] == "it may last at most 8784h, a year"
