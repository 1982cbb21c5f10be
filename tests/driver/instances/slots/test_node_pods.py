"""The pods of a node, and how far the kubelet's listing covers them."""

from __future__ import annotations

from typing import Any

import pytest

from driver.device_ids import DeviceKey
from driver.instances.slots.node_pods import (
    ListedDevice,
    Listing,
    NodePod,
    PodName,
    node_pod,
    uncovered,
)

CAM, USB = "akri.sh/cam", "akri.sh/usb"


def container(name: str = "main", restart: str = "", **requests: object) -> dict[str, Any]:
    """A container; `cam` and `usb` are requests."""
    wanted = {f"akri.sh/{k}": v for k, v in requests.items()}
    body: dict[str, Any] = {"name": name, "resources": {"limits": {**wanted, "cpu": "1"}}}
    return {**body, "restartPolicy": restart} if restart else body


def a_pod_object(*containers: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": "pod", "uid": "uid-1"},
        "spec": {"containers": list(containers), "initContainers": parts.get("init")},
        "status": parts.get("status"),
    }


def requests(*containers: dict[str, Any], **parts: Any) -> dict[str, int]:
    return dict(node_pod(a_pod_object(*containers, **parts)).requests)


def test_only_our_resources_count() -> None:
    assert requests(container(cam="2"), container("b", cam=1, usb="1")) == {CAM: 3, USB: 1}
    assert requests({"name": "bare"}) == {}


def test_limits_and_requests_are_one() -> None:
    body = {"name": "main", "resources": {"requests": {CAM: "2"}, "limits": {CAM: "2"}}}

    assert requests(body) == {CAM: 2}


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ([container("i", cam=1)], 2),
        ([container("i", cam=5)], 5),
        ([container("i", cam=3), container("j", cam=4)], 4),
        ([container("side", "Always", cam=1)], 3),
        ([container("side", "Always", cam=1), container("i", cam=2)], 3),
        ([container("side", "Always", cam=1), container("i", cam=3)], 4),
        ([container("i", cam=3), container("side", "Always", cam=1)], 3),
    ],
)
def test_init_containers_and_sidecars_follow_kubernetes_rule(
    init: list[dict[str, Any]], expected: int
) -> None:
    assert requests(container(cam=2), init=init) == {CAM: expected}


def test_requests_that_a_claim_serves_are_not_the_device_plugins() -> None:
    mapping = {"containerName": "main", "resourceName": CAM, "requestName": "r"}
    status = {"extendedResourceClaimStatus": {"requestMappings": [mapping]}}

    assert requests(container(cam=1, usb=1), status=status) == {USB: 1}
    assert requests(container("other", cam=1), status=status) == {CAM: 1}


@pytest.mark.parametrize(("quantity", "least"), [("2k", 2000), ("1500m", 1 << 60), ("-1", 1 << 60)])
def test_unusual_quantities_err_on_the_side_of_use(quantity: str, least: int) -> None:
    assert requests(container(cam=quantity))[CAM] >= least


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Succeeded", True), ("Failed", True), ("Running", False), ("Pending", False), ("", False)],
)
def test_a_pod_is_finished_by_its_phase(phase: str, finished: bool) -> None:
    assert node_pod(a_pod_object(status={"phase": phase})).finished == finished


def a_pod(name: str = "pod", *, finished: bool = False, **wanted: int) -> NodePod:
    requests = {f"akri.sh/{k}": v for k, v in wanted.items()}
    return NodePod(PodName("default", name), f"uid-of-{name}", finished, requests)


def a_listing(*devices: str, pod: str = "pod", container: str = "main") -> Listing:
    return Listing(
        0.0,
        frozenset(
            ListedDevice(PodName("default", pod), container, DeviceKey(CAM, d)) for d in devices
        ),
    )


def test_a_pod_is_covered_by_as_many_devices_as_it_wants() -> None:
    assert uncovered([a_pod(cam=2)], a_listing("1", "2")) == {}
    assert uncovered([a_pod(cam=2)], a_listing("1")) == {CAM: PodName("default", "pod")}
    assert uncovered([a_pod(cam=1)], a_listing("1", pod="other")).keys() == {CAM}
    assert uncovered([a_pod()], a_listing()) == {}


def test_a_device_that_two_containers_of_a_pod_have_counts_once() -> None:
    both = a_listing("1").devices | a_listing("1", container="side").devices

    assert uncovered([a_pod(cam=2)], Listing(0.0, both)).keys() == {CAM}


def test_a_finished_pod_needs_no_cover() -> None:
    assert uncovered([a_pod(cam=1, finished=True)], a_listing()) == {}


def test_each_resource_is_covered_by_itself() -> None:
    assert uncovered([a_pod(cam=1, usb=1)], a_listing("1")).keys() == {USB}


def test_the_first_pod_by_name_is_named() -> None:
    pods = [a_pod("z", cam=1), a_pod("a", cam=1)]

    assert uncovered(pods, a_listing()) == {CAM: PodName("default", "a")}
