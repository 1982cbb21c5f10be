"""PodSpecs of brokers: the device in place of the placeholder, and the node."""

from __future__ import annotations

from typing import Any

import pytest

from driver.brokers.pod_specs import (
    CLAIM,
    PLACEHOLDER,
    on_node,
    slots,
    with_claim,
    with_resource,
)
from tests.driver.brokers.broker_builders import a_container, a_pod_spec

RESOURCE = "akri.sh/akri-onvif-8120fe"
TEMPLATE = "akri-onvif-8120fe-claim"
BY_TEMPLATE = {"name": CLAIM, "resourceClaimTemplateName": TEMPLATE}
IS_NODE_A = {"key": "metadata.name", "operator": "In", "values": ["node-a"]}
ZONE = {"key": "zone", "operator": "In", "values": ["east"]}


def asking(**resources: Any) -> dict[str, Any]:
    """A PodSpec with one container that has these resources."""
    return {"containers": [{"name": "broker", "resources": resources}]}


def a_sidecar(count: str) -> dict[str, Any]:
    return a_container(count, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param({"containers": [{"name": "broker"}]}, 0, id="no resources"),
        pytest.param(asking(limits={"cpu": "1"}), 0, id="no placeholder"),
        pytest.param(asking(limits={PLACEHOLDER: "2"}), 2, id="limits alone"),
        pytest.param(asking(requests={PLACEHOLDER: 3}), 3, id="requests alone, a number"),
        pytest.param(asking(limits=None, requests={PLACEHOLDER: "1"}), 1, id="no limits"),
        pytest.param(
            asking(limits={PLACEHOLDER: "2"}, requests={PLACEHOLDER: "1"}), 2, id="more of limits"
        ),
        pytest.param({"containers": [a_container("1"), a_container("2")]}, 3, id="containers add"),
        pytest.param(a_pod_spec("1", initContainers=[a_container("2")]), 2, id="init has more"),
        pytest.param(a_pod_spec("3", initContainers=[a_container("2")]), 3, id="init has less"),
        pytest.param(
            a_pod_spec("1", initContainers=[a_container("2"), a_container("2")]),
            2,
            id="init containers run one after the other",
        ),
        pytest.param(a_pod_spec("1", initContainers=[a_sidecar("2")]), 3, id="sidecars stay"),
        pytest.param(
            a_pod_spec("1", initContainers=[a_sidecar("1"), a_container("3")]),
            4,
            id="an init container beside a sidecar",
        ),
    ],
)
def test_slots_of_a_pod_are_counted_as_kubernetes_counts_resources(
    spec: dict[str, Any], count: int
) -> None:
    assert slots(spec) == count


def test_the_device_plugins_resource_takes_the_place_of_the_placeholder() -> None:
    spec = asking(
        limits={PLACEHOLDER: "2", "cpu": "1"},
        requests={PLACEHOLDER: "2", "memory": "1Gi"},
        claims=[{"name": "gpu"}],
    )
    spec["initContainers"] = [{"name": "first", "resources": {"limits": {PLACEHOLDER: "1"}}}]

    changed = with_resource(spec, RESOURCE)

    assert changed == {
        "initContainers": [{"name": "first", "resources": {"limits": {RESOURCE: "1"}}}],
        "containers": [
            {
                "name": "broker",
                "resources": {
                    "limits": {RESOURCE: "2", "cpu": "1"},
                    "requests": {RESOURCE: "2", "memory": "1Gi"},
                    "claims": [{"name": "gpu"}],
                },
            }
        ],
    }


def test_a_claim_takes_the_place_of_the_placeholder_in_each_container_that_has_it() -> None:
    spec = asking(limits={PLACEHOLDER: "2", "cpu": "1"}, requests={PLACEHOLDER: "2"})
    spec["containers"].append({"name": "other", "resources": {"limits": {"cpu": "2"}}})
    spec["initContainers"] = [a_container("1", name="first")]

    changed = with_claim(spec, TEMPLATE)

    assert changed["resourceClaims"] == [BY_TEMPLATE]
    assert changed["containers"] == [
        {"name": "broker", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": CLAIM}]}},
        {"name": "other", "resources": {"limits": {"cpu": "2"}}},
    ]
    assert changed["initContainers"] == [
        {"name": "first", "image": "broker:1", "resources": {"claims": [{"name": CLAIM}]}}
    ]


def test_claims_of_the_pod_itself_stay() -> None:
    gpu = {"name": "gpu", "resourceClaimName": "gpu-of-all"}
    spec = asking(limits={PLACEHOLDER: "1"}, claims=[{"name": "gpu"}])
    spec["resourceClaims"] = [gpu]

    changed = with_claim(spec, TEMPLATE)

    assert changed["resourceClaims"] == [gpu, BY_TEMPLATE]
    assert changed["containers"][0]["resources"]["claims"] == [{"name": "gpu"}, {"name": CLAIM}]


@pytest.mark.parametrize("change", [with_resource, with_claim])
def test_a_pod_without_the_placeholder_gets_no_device(change: Any) -> None:
    spec = asking(limits={"cpu": "1"}, claims=[{"name": "gpu"}])
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu-of-all"}]

    assert change(spec, "anything") == spec


@pytest.mark.parametrize("change", [with_resource, with_claim, on_node])
def test_the_given_spec_is_not_changed(change: Any) -> None:
    spec = a_pod_spec("2", initContainers=[a_container("1")])

    change(spec, "anything")

    assert spec == a_pod_spec("2", initContainers=[a_container("1")])


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param(None, [{"matchFields": [IS_NODE_A]}], id="no terms"),
        pytest.param([], [{"matchFields": [IS_NODE_A]}], id="an empty list"),
        pytest.param(
            [{"matchExpressions": [ZONE]}],
            [{"matchExpressions": [ZONE], "matchFields": [IS_NODE_A]}],
            id="a term",
        ),
        pytest.param(
            [{"matchExpressions": [ZONE]}, {"matchFields": [IS_NODE_A]}],
            [
                {"matchExpressions": [ZONE], "matchFields": [IS_NODE_A]},
                {"matchFields": [IS_NODE_A, IS_NODE_A]},
            ],
            id="each of the alternatives",
        ),
    ],
)
def test_each_term_of_the_node_affinity_gets_the_node(
    terms: list[dict[str, Any]] | None, expected: list[dict[str, Any]]
) -> None:
    required = {"nodeSelectorTerms": terms}
    preferred = [{"weight": 1, "preference": {"matchExpressions": [ZONE]}}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
        "podAntiAffinity": {},
    }

    changed = on_node(a_pod_spec(affinity=affinity), "node-a")["affinity"]

    assert changed["podAntiAffinity"] == {}
    assert changed["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": expected},
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }


@pytest.mark.parametrize("affinity", [None, {}, {"nodeAffinity": None}, {"nodeAffinity": {}}])
def test_a_pod_without_node_affinity_gets_it(affinity: dict[str, Any] | None) -> None:
    changed = on_node(a_pod_spec(affinity=affinity), "node-a")

    required = {"nodeSelectorTerms": [{"matchFields": [IS_NODE_A]}]}
    assert changed["affinity"] == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
