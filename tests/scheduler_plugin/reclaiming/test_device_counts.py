"""How many devices pods need that go together, and how many would do and are free."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.placement import accepted_devices
from scheduler_plugin.reclaiming.placement.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.placement.device_counts import too_few_for
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from tests.scheduler_plugin.builders import a_request, pod_uid
from tests.scheduler_plugin.reclaiming.devices_builders import Cluster, a_device, a_slice_object
from tests.scheduler_plugin.reclaiming.test_devices import a_cluster, use, waiting

TWO = [a_slice_object("d1"), a_slice_object("d2", node="m")]


def missing(cluster: Cluster, *names: str) -> str:
    accepted = AcceptedDevices(cluster.inventory())
    return too_few_for([_pod(cluster, name) for name in names], cluster.world, accepted)


def _pod(cluster: Cluster, name: str) -> PodView:
    pod = cluster.world.facts.pod(pod_uid(name))
    assert pod is not None
    return pod


def heads(count: int, **fields: Any) -> list[Any]:
    return [waiting(name=f"w{number}", **fields) for number in range(count)]


def test_devices_of_all_nodes_count() -> None:
    cluster = a_cluster(*heads(3), slices=TWO)

    assert missing(cluster, "w0", "w1") == ""
    assert "3 of its pods request 3 of onvif, and 2 matching" in missing(cluster, "w0", "w1", "w2")


def test_what_is_in_use_is_not_free() -> None:
    cluster = a_cluster(*heads(2), use("robots", "r1", on="d1"), slices=TWO)

    assert "request 2 of onvif, and 1 matching" in missing(cluster, "w0", "w1")


@pytest.mark.parametrize(("slots", "enough"), [(4, True), (3, False)])
def test_a_device_with_slots_serves_several(slots: int, enough: bool) -> None:
    slices = [a_slice_object(a_device("d1", slots=slots))]
    cluster = a_cluster(*heads(2, slots=2), slices=slices)

    assert (missing(cluster, "w0", "w1") == "") is enough


def test_what_selectors_refuse_does_not_count() -> None:
    cel = {"cel": {"expression": 'device.attributes["moorage.dev"].model == "new"'}}
    asked = [a_request(selectors=[cel])]
    slices = [a_slice_object(a_device("d1", model="old"), a_device("d2", model="new"))]
    cluster = a_cluster(*heads(2, requests=asked), slices=slices)
    cluster.request = {"selectors": [cel]}

    assert missing(cluster, "w0") == ""
    assert "and 1 matching" in missing(cluster, "w0", "w1")


def test_of_who_wants_all_devices_of_a_node_nothing_is_said() -> None:
    everything = [a_request(allocationMode="All")]
    cluster = a_cluster(*heads(2, requests=everything), slices=[a_slice_object()])

    assert missing(cluster, "w0", "w1") == ""


def test_devices_are_looked_at_a_few_at_a_time_and_again_when_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accepted_devices, "MOST_NEW", 2)
    cel = {"cel": {"expression": 'device.attributes["moorage.dev"].model == "new"'}}
    slices = [a_slice_object(a_device(f"d{n}"), node=f"n{n}") for n in range(5)]
    cluster = a_cluster(*heads(2, requests=[a_request(selectors=[cel])]), slices=slices)
    cluster.request = {"selectors": [cel]}
    inventory, pods = cluster.inventory(), [_pod(cluster, "w0"), _pod(cluster, "w1")]
    accepted = AcceptedDevices(inventory)

    found = [too_few_for(pods, cluster.world, accepted) for _ in range(4)]

    assert found[:2] == ["", ""]
    assert all("and 0 matching" in each for each in found[2:])
    news = a_slice_object(a_device("e1", model="new"), a_device("e2", model="new"), node="n1")
    inventory.devices.put_slice(published_slice({**news, "metadata": {"name": "slice-1"}}))
    assert too_few_for(pods, cluster.world, accepted) == ""
