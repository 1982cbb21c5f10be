"""What is read of objects that the controller, or Akri's, has made."""

from __future__ import annotations

from typing import Any

import pytest

from driver.brokers import bodies
from driver.brokers.stored import Phase, Stored, stored
from kube.kinds import JOBS, PODS, SERVICES
from kube.resources import Resource
from kube.shapes.reading import UnreadableError
from tests.driver.brokers.broker_builders import NODE_A, a_device, as_stored, some_workloads


def an_object(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    fields = {"name": "broker", "namespace": "plant", "uid": "1", **metadata}
    return {"metadata": fields, "status": status}


def test_a_pod_that_was_made_is_read_back() -> None:
    made = bodies.pod(some_workloads(), a_device(), NODE_A)

    assert as_stored(made) == Stored(
        resource=PODS,
        namespace="plant",
        name=made.name,
        uid=f"uid-of-pods/{made.name}",
        revision=made.revision,
        configuration="akri-onvif",
        instance="akri-onvif-8120fe",
        owner="uid-of-akri-onvif-8120fe",
        deleted=False,
        node="node-a",
        phase="Pending",
    )


def test_an_object_without_labels_has_none_of_what_is_read() -> None:
    assert stored(SERVICES, an_object()) == Stored(
        resource=SERVICES,
        namespace="plant",
        name="broker",
        uid="1",
        revision="",
        configuration="",
        instance="",
        owner="",
        deleted=False,
    )


def test_the_owner_is_the_one_that_controls_it() -> None:
    owners = [{"uid": "a"}, {"uid": "b", "controller": False}, {"uid": "c", "controller": True}]

    assert stored(PODS, an_object(ownerReferences=owners)).owner == "c"
    assert stored(PODS, an_object(ownerReferences=owners[:2])).owner == ""


def test_an_object_with_a_time_of_deletion_is_terminating() -> None:
    assert stored(PODS, an_object(deletionTimestamp="2026-11-21T12:00:00Z")).deleted


@pytest.mark.parametrize(
    ("resource", "status", "phase"),
    [
        (PODS, None, "Pending"),
        (PODS, {"phase": "Pending"}, "Pending"),
        (PODS, {"phase": "Running"}, "Running"),
        (PODS, {"phase": "Unknown"}, "Pending"),
        (PODS, {"phase": "Failed"}, "Ended"),
        (PODS, {"phase": "Succeeded"}, "Ended"),
        (JOBS, None, "Running"),
        (JOBS, {"conditions": [{"type": "Suspended", "status": "True"}]}, "Running"),
        (JOBS, {"conditions": [{"type": "Complete", "status": "False"}]}, "Running"),
        (JOBS, {"conditions": [{"type": "Complete", "status": "True"}]}, "Ended"),
        (JOBS, {"conditions": [{"type": "Failed", "status": "True"}]}, "Ended"),
        (SERVICES, {"loadBalancer": {}}, ""),
    ],
)
def test_the_phase_of_each_kind(
    resource: Resource, status: dict[str, Any] | None, phase: Phase
) -> None:
    assert stored(resource, an_object(status)).phase == phase


@pytest.mark.parametrize(
    ("condition", "waits"),
    [
        ({"type": "PodScheduled", "status": "True", "message": "x"}, ""),
        ({"type": "Ready", "status": "False", "message": "x"}, ""),
        (
            {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"},
            "SchedulingGated",
        ),
        (
            {"type": "PodScheduled", "status": "False", "reason": "R", "message": "No room."},
            "No room.",
        ),
        ({"type": "PodScheduled", "status": "False"}, ""),
    ],
)
def test_a_pod_waits_while_it_is_not_scheduled(condition: dict[str, Any], waits: str) -> None:
    status = {"phase": "Pending", "conditions": [condition]}

    assert stored(PODS, an_object(status)).waits == waits
    assert stored(JOBS, an_object(status)).waits == ""


def test_a_pod_is_known_by_its_node_although_the_label_is_cut() -> None:
    node = f"{'n' * 60}.example.com"
    pod = as_stored(bodies.pod(some_workloads(), a_device(), type(NODE_A)(node)))

    assert pod.node != node
    assert pod.is_on(node)
    assert not pod.is_on(f"{'n' * 60}.example.org")
    assert not stored(PODS, an_object()).is_on(node)


def test_a_malformed_object_is_unreadable() -> None:
    with pytest.raises(UnreadableError):
        stored(PODS, {"metadata": {"name": "broker"}})


def test_the_gate_says_more_than_kube_scheduler_and_names_no_pod() -> None:
    sentence = 'does not fit: queue "vision" uses 3 camera, 1 more would pass its limit of 3.'
    scheduled = {"type": "PodScheduled", "status": "False", "message": "It is gated."}
    for named in ("Pod plant/broker-a", "ResourceClaim plant/broker-a-broker-device-x7k2p"):
        kind = named.split()[0]
        admitted = {
            "type": "moorage.dev/Admitted",
            "status": "False",
            "message": f"{named} {sentence}",
        }
        body = {
            "metadata": {"name": "broker-a", "namespace": "plant", "uid": "1"},
            "status": {"phase": "Pending", "conditions": [scheduled, admitted]},
        }
        assert stored(PODS, body).waits == f"{kind} {sentence}"
