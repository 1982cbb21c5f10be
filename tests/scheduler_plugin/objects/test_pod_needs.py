"""What pods ask of their nodes: as the API server has them, as a watch's shape, and as shared."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import effective_requests
from kube.shapes.pods import Pod
from kube.shapes.quantities import thousandths
from kube.shapes.selection import Toleration
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.names import QUEUE_LABEL
from scheduler_plugin.objects.node_requests import NOTHING, PODS
from scheduler_plugin.objects.pod_needs import PodOnNode
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.projections import project_pod, project_stored_pod
from tests.scheduler_plugin.builders import (
    SETTINGS,
    a_claim_object,
    a_pod,
    a_pod_object,
    a_result,
    pod_uid,
)

QUANTITIES = st.sampled_from(["0", "1", "250m", "1500m", "1Gi", "1e3", "2", "odd"])
RESOURCES = st.dictionaries(
    st.sampled_from(["limits", "requests"]),
    st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage"]), QUANTITIES),
)
CONTAINERS = st.lists(
    st.fixed_dictionaries({"resources": RESOURCES}, optional={"restartPolicy": st.just("Always")}),
    max_size=3,
)
SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "initContainers": CONTAINERS,
        "resources": RESOURCES,
        "overhead": st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES),
    },
)

ELSEWHERE = {"schedulerName": "default-scheduler"}
ZONE = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    ]
}
NEEDY = {
    "nodeSelector": {"disk": "fast"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": ZONE,
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
        },
        "podAffinity": {},
    },
    "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 60}],
}


def asked_of_node(pod: dict[str, Any]) -> dict[str, int]:
    """A plain model: nothing is shared, remembered or parsed by a shape."""
    spec = pod["spec"]
    init = [(_of(c), c.get("restartPolicy") == "Always") for c in spec.get("initContainers") or ()]
    asked = effective_requests(init, [_of(c) for c in spec.get("containers") or ()])
    asked |= _of(spec)
    for name, amount in _amounts(spec.get("overhead") or {}).items():
        asked[name] = asked.get(name, 0) + amount
    return {**asked, PODS: 1000}


def _of(part: dict[str, Any]) -> dict[str, int]:
    resources = part.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(quantities: dict[str, Any]) -> dict[str, int]:
    return {name: thousandths(quantity) or 0 for name, quantity in quantities.items()}


@given(SPECS)
def test_requests_are_added_up_as_before(spec: dict[str, Any]) -> None:
    body = a_pod_object(spec=spec)

    assert pod_view(body, SETTINGS).asked == asked_of_node(body)


def test_a_pod_asks_for_its_containers_its_own_and_its_overhead() -> None:
    spec = {
        "initContainers": [
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"resources": {"requests": {"cpu": "3", "example.com/gpu": "1"}}},
        ],
        "containers": [{"resources": {"limits": {"cpu": "1", "memory": "1Ki"}}}],
        "resources": {"requests": {"memory": "2Ki"}},
        "overhead": {"cpu": "10m"},
    }

    assert a_pod(spec=spec).asked == {
        "cpu": 3110,
        "memory": 2048_000,
        "example.com/gpu": 1000,
        "pods": 1000,
    }


def test_a_pod_that_ended_asks_for_nothing() -> None:
    ended = a_pod(node="n", phase="Succeeded", requests={"cpu": "1"})

    assert (ended.asked, ended.needs, ended.on_node) == (NOTHING, None, None)


def test_what_pods_ask_for_alike_is_one_object() -> None:
    one = a_pod("one", requests={"cpu": "1"}, spec=NEEDY)
    other = a_pod("other", requests={"cpu": "1"}, spec=NEEDY)
    written_otherwise = a_pod("third", requests={"cpu": "1000m"}, spec=NEEDY)

    assert one.asked is other.asked is written_otherwise.asked
    assert one.needs is other.needs
    assert one.needs == written_otherwise.needs
    assert hash(one.needs) == hash(written_otherwise.needs)


def test_needs_are_selector_required_affinity_and_tolerations() -> None:
    needs = a_pod(spec=NEEDY).needs

    assert needs is not None
    assert needs.labels == {"disk": "fast"}
    assert needs.tolerations == (Toleration("gpu", "Exists"),)
    (terms,) = needs.selections
    assert [terms.match("n", {"zone": zone}) for zone in "abc"] == [True, True, False]


REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}


@pytest.mark.parametrize(
    ("spec", "has_more"),
    [
        ({}, False),
        ({"volumes": [{"name": "a", "emptyDir": {}}]}, False),
        ({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}]}, True),
        ({"volumes": [{"name": "a", "ephemeral": {}}]}, True),
        ({"affinity": {"podAffinity": PREFERRED, "podAntiAffinity": PREFERRED}}, False),
        ({"affinity": {"podAffinity": REQUIRED}}, True),
        ({"affinity": {"podAntiAffinity": REQUIRED}}, True),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, True),
        ({"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}, False),
        ({"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}, True),
    ],
)
def test_a_pod_says_whether_it_asks_for_what_is_not_looked_at(
    spec: dict[str, Any], has_more: bool
) -> None:
    needs = a_pod(spec=spec).needs

    assert needs is not None
    assert needs.has_more is has_more


def test_only_a_pod_that_may_be_bound_has_needs() -> None:
    terminating = a_pod_object()
    terminating["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    assert a_pod().needs is not None
    assert a_pod(node="n").needs is None
    assert pod_view(terminating, SETTINGS).needs is None


def test_a_gated_pod_whose_selector_changes_is_another() -> None:
    assert a_pod() != a_pod(spec={"nodeSelector": {"disk": "fast"}})


def test_a_bystander_is_what_it_takes_of_its_node() -> None:
    body = a_pod_object("b", node="n", requests={"cpu": "1"}, spec=ELSEWHERE)
    asked = {"cpu": 1000, "pods": 1000}

    assert project_pod(body, SETTINGS) is None
    assert project_stored_pod(body, SETTINGS) == PodOnNode(pod_uid("b"), "n", asked)
    body["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    terminating = PodOnNode(pod_uid("b"), "n", asked, is_terminating=True)
    assert project_stored_pod(body, SETTINGS) == terminating


def test_a_bystander_that_takes_of_no_node_is_not_kept() -> None:
    for body in (
        a_pod_object(spec=ELSEWHERE),
        a_pod_object(node="n", phase="Failed", spec=ELSEWHERE),
    ):
        assert project_stored_pod(body, SETTINGS) is None


def test_a_pod_that_matters_is_its_view_and_says_what_it_takes() -> None:
    found = project_stored_pod(a_pod_object("a", node="n", claims=["cam"]), SETTINGS)

    assert isinstance(found, PodView)
    assert found.on_node == PodOnNode(pod_uid("a"), "n", found.asked)


def test_heartbeats_of_a_bystander_change_nothing() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "False"}]}
    before, after = (
        a_pod_object(node="n", spec=ELSEWHERE, status=status) for status in ({}, ready)
    )

    assert project_stored_pod(before, SETTINGS) == project_stored_pod(after, SETTINGS)


def test_shape_says_of_needs_what_the_whole_object_says() -> None:
    for body in (a_pod_object(spec=NEEDY), a_pod_object(node="n", spec={**NEEDY, **ELSEWHERE})):
        shaped = msgspec.json.decode(msgspec.json.encode(body), type=Pod)
        assert project_stored_pod(shaped, SETTINGS) == project_stored_pod(body, SETTINGS)


def test_an_allocated_claim_says_on_which_nodes_its_devices_are() -> None:
    body = a_claim_object(results=[a_result()])
    assert claim_view(body, queue_label=QUEUE_LABEL).nodes is None

    body["status"]["allocation"]["nodeSelector"] = ZONE
    one, other = (claim_view(body, queue_label=QUEUE_LABEL).nodes for _ in range(2))
    assert one is not None
    assert one is other
    assert (one.match("n", {"zone": "a"}), one.match("n", {})) == (True, False)
