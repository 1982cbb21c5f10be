"""Free devices, as the checker counts them."""

from __future__ import annotations

from typing import Any

from tests.chaos.objects import DRIVER, Snapshot
from tests.chaos.supply import asks_for_what_is_gone, free_devices


def a_device(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "attributes": {"configuration": {"string": "camera"}}, **fields}


def a_slice(*devices: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pool = {"name": "shared/camera", "generation": 1, "resourceSliceCount": 1}
    return {"spec": {"driver": DRIVER, "pool": pool, "devices": list(devices), **spec}}


def on(*nodes: str) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def nodes_of(*slices: dict[str, Any]) -> dict[str, frozenset[str] | None]:
    found = Snapshot({"resourceslices": {("", str(n)): body for n, body in enumerate(slices)}})
    return {free.place[1]: free.nodes for free in free_devices(found)}


def test_a_slice_says_for_all_its_devices_which_nodes_see_them() -> None:
    found = nodes_of(a_slice(a_device("one"), a_device("two"), nodeSelector=on("a", "b")))

    assert found == {"one": frozenset("ab"), "two": frozenset("ab")}


def test_a_device_says_it_itself_where_its_slice_leaves_it_to_devices() -> None:
    devices = (a_device("one", nodeSelector=on("a")), a_device("two", allNodes=True))

    found = nodes_of(a_slice(*devices, perDeviceNodeSelection=True))

    assert found == {"one": frozenset("a"), "two": None}


def test_a_pod_with_a_slot_waits_for_a_configuration_that_is_gone() -> None:
    container = {"name": "main", "resources": {"limits": {"akri.sh/camera": "1", "cpu": "1"}}}
    pod = {"spec": {"containers": [{"name": "other"}, container]}}
    there: dict[Any, Any] = {("default", "camera"): {}}

    assert asks_for_what_is_gone(pod, Snapshot({"configurations": {}}))
    assert not asks_for_what_is_gone(pod, Snapshot({"configurations": there}))
