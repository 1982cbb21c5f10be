"""What is kept of a Node, and whom it keeps away."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.shapes.nodes import Node
from kube.shapes.reading import UnreadableError
from scheduler_plugin.objects.node_selection import on_node
from scheduler_plugin.objects.nodes import NodeView, node_view
from tests.scheduler_plugin.builders import a_node_object, a_pod

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def why_not(node: NodeView, **spec: Any) -> str:
    needs = a_pod(spec=spec).needs
    assert needs is not None
    return node.why_not(needs)


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_what_a_node_has_is_read_in_thousandths() -> None:
    body = a_node_object("n", {"zone": "a"}, allocatable={"cpu": "1500m", "pods": "110"})
    node = node_view(body)

    assert (node.name, node.labels, node.closed) == ("n", {"zone": "a"}, "")
    assert node.allocatable == {"cpu": 1500, "pods": 110_000}


def test_heartbeats_and_images_change_nothing() -> None:
    body = a_node_object("n")
    before = node_view(body)
    body["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-21T12:00:00Z"
    body["status"]["conditions"].append({"type": "DiskPressure", "status": "False"})
    body["status"]["images"] = [{"names": ["image"], "sizeBytes": 1}]

    assert node_view(body) == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"spec": {"unschedulable": True}}, "takes no pods"),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "is not ready"),
        ({"status": {"conditions": [{"type": "MemoryPressure"}]}}, "is not ready"),
        ({"status": {}}, "is not ready"),
        ({"status": None, "spec": None}, "is not ready"),
    ],
)
def test_a_node_that_is_closed_says_why(change: dict[str, Any], why: str) -> None:
    node = node_view({**a_node_object("n"), **change})

    assert why_not(node) == why


def test_a_node_that_is_being_deleted_is_closed() -> None:
    body = a_node_object("n")
    body["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    assert why_not(node_view(body)) == "is being deleted"


def test_a_pod_comes_to_nodes_that_its_node_selector_selects() -> None:
    node = node_view(a_node_object("n", {"zone": "a"}))

    assert why_not(node, nodeSelector={"zone": "a"}) == ""
    assert why_not(node, nodeSelector={"zone": "b"}) == ("is not one that its nodeSelector selects")


def test_a_pod_comes_to_nodes_that_one_term_of_its_affinity_matches() -> None:
    node = node_view(a_node_object("n", {"zone": "a", "cores": "8"}))
    zone = {"key": "zone", "operator": "In", "values": ["b"]}
    cores = {"key": "cores", "operator": "Gt", "values": ["4"]}
    name = {"key": "metadata.name", "operator": "In", "values": ["n"]}

    refused = "is not one that its affinity, or its other claims, allow"
    assert why_not(node, affinity=affinity({"matchExpressions": [zone, cores]})) == refused
    assert why_not(node, affinity=affinity({})) == refused
    terms = ({"matchExpressions": [zone]}, {"matchExpressions": [cores], "matchFields": [name]})
    assert why_not(node, affinity=affinity(*terms)) == ""


def test_a_pod_comes_to_nodes_whose_taints_it_tolerates() -> None:
    node = node_view(a_node_object("n", taints=[TAINT]))

    assert why_not(node) == 'has the taint "gpu", which it does not tolerate'
    assert why_not(node, tolerations=[{"key": "gpu", "value": "no"}]) != ""
    assert why_not(node, tolerations=[{"key": "gpu", "value": "yes"}]) == ""
    assert why_not(node, tolerations=[{"operator": "Exists"}]) == ""
    soft = node_view(a_node_object("n", taints=[{**TAINT, "effect": "PreferNoSchedule"}]))
    assert why_not(soft) == ""


def test_a_pod_comes_to_nodes_where_its_allocated_claims_can_be_used() -> None:
    node, needs = node_view(a_node_object("n")), a_pod().needs

    assert needs is not None
    assert node.why_not(needs, [on_node("n")]) == ""
    assert node.why_not(needs, [on_node("other")]) != ""


def test_shape_says_of_a_node_what_the_whole_object_says() -> None:
    body = a_node_object("n", {"zone": "a"}, taints=[TAINT], allocatable={"cpu": "4"})
    shaped = msgspec.json.decode(msgspec.json.encode(body), type=Node)

    assert node_view(shaped) == node_view(body)


def test_what_cannot_be_a_node_is_refused() -> None:
    with pytest.raises(UnreadableError):
        node_view({**a_node_object("n"), "spec": 7})
