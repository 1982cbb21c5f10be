"""The rows of each list, of a world with queues that share cameras."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world import World
from scheduler_plugin.dashboard.lines import (
    Lines,
    claim_lines,
    device_lines,
    queue_lines,
    waiting_lines,
)
from scheduler_plugin.dashboard.snapshots import Line
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.objects.pods import NamespaceView
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from tests.scheduler_plugin.builders import (
    SETTINGS,
    a_claim,
    a_class,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_slice_object,
    an_allocated_claim,
    put,
)

CAMERA = "onvif-aaaaaa"


@pytest.fixture
def world() -> World:
    """Vision pays for `cam`, which robots uses, too; a pod of vision waits for three more."""
    found = World(SETTINGS)
    found.put_namespace(NamespaceView("default", {}))
    put(found, a_class("onvif"))
    put(
        found, a_queue("research", onvif=(2, 2)), a_queue("vision", parent="research", onvif=(2, 2))
    )
    put(found, a_queue("robots"))
    put(found, a_pod("v", queue="vision", claims=["cam"], node="node-a"))
    put(found, a_pod("r", queue="robots", claims=["cam"], node="node-a"))
    result = a_result(device=CAMERA, slots="1")
    put(found, an_allocated_claim("cam", "v", "r", queue="vision", results=[result]))
    put(found, a_claim("more", requests=[a_request(count=3)]))
    put(found, a_pod("w", queue="vision", claims=["more"]))
    instance = InstanceView(CAMERA, ResourceKey("onvif"), ("node-a",), 4, (("node-b", 1),))
    found.put_instance(instance)
    return found


def shown(lines: Lines, *, whole: bool = True) -> list[dict[str, Any]]:
    return [json.loads(line.json(whole=whole)) for line in lines if line is not None]


def lines_of(lines: Lines) -> list[Line]:
    return [line for line in lines if line is not None]


def test_queues_are_a_tree_with_their_figures(world: World) -> None:
    shares = ShareFigures(world)
    rows = shown(queue_lines(world, lambda name: shares.of(name, 0.0)))

    assert [(row["queue"], row["depth"]) for row in rows] == [
        ("research", 0),
        ("vision", 1),
        ("robots", 0),
    ]
    vision = rows[1]
    figures = {name: vision[name] for name in ("usage", "quota", "limit", "requested", "share")}
    assert figures == {"usage": 1, "quota": 2, "limit": 2, "requested": 4, "share": 2}


def test_a_queue_is_found_by_those_above(world: World) -> None:
    shares = ShareFigures(world)
    lines = lines_of(queue_lines(world, lambda name: shares.of(name, 0.0)))

    assert [line.has(("research",), whole=True) for line in lines] == [True, True, False]


def test_a_claim_has_its_owner_and_its_sharers_by_queue(world: World) -> None:
    rows = shown(claim_lines(world))

    cam = next(row for row in rows if row["name"] == "cam")
    assert (cam["owner"], cam["cost"], cam["devices"]) == ("vision", [["onvif", 1]], [CAMERA])
    assert cam["sharers"] == [["vision", 1], ["robots", 1]]


def test_who_shares_is_not_said_to_those_who_see_no_pods(world: World) -> None:
    cam = shown(claim_lines(world), whole=False)[0]

    assert "sharers" not in cam
    assert cam["consumers"] == 2


def test_a_device_has_its_node_and_who_uses_its_slots(world: World) -> None:
    (row,) = shown(device_lines(world))
    (less,) = shown(device_lines(world), whole=False)

    assert (row["name"], row["nodes"], row["slots"], row["used"]) == (CAMERA, ["node-a"], 4, 2)
    assert (row["claims"], row["held"]) == ([["default/cam", 1]], [["node-b", 1]])
    assert "claims" not in less


def test_devices_of_other_drivers_are_those_that_claims_have(world: World) -> None:
    result = a_result(driver="gpu.example.com", pool="node-b", device="gpu-0")
    put(world, an_allocated_claim("gpu", requests=[a_request("onvif")], results=[result]))

    other = shown(device_lines(world))[-1]
    assert (other["driver"], other["pool"], other["name"]) == ("gpu.example.com", "node-b", "gpu-0")
    assert (other["slots"], other["nodes"]) == (None, ["*"])


def test_a_device_is_found_by_its_state_its_taints_and_where_it_was(world: World) -> None:
    taint = {
        "key": "moorage.dev/offline",
        "effect": "NoSchedule",
        "timeAdded": "2026-11-21T11:00:00Z",
    }
    found = a_slice_object("s", ("onvif", CAMERA), nodeName="node-z")
    found["spec"]["devices"][0]["taints"] = [taint]
    devices = OfferedDevices()
    devices.put_slice(published_slice(found))
    lines = lines_of(device_lines(world, devices))
    (row,) = shown(iter(lines))

    assert (row["state"], row["since"]) == ("Offline", "2026-11-21T11:00:00Z")
    assert row["taints"] == ["moorage.dev/offline:NoSchedule"]
    for word in ("offline", "noschedule", "node-z"):
        assert lines[0].has((word,), whole=False)


def test_one_of_several_devices_of_an_instance_is_that_instance(world: World) -> None:
    result = a_result(device=f"{CAMERA}-3")
    put(world, an_allocated_claim("fourth", requests=[a_request("onvif")], results=[result]))

    (row,) = shown(device_lines(world))
    assert row["used"] == 3


def test_who_waits_is_told_the_sentence_of_the_verdict(world: World) -> None:
    (row,) = shown(waiting_lines(world, lambda _: None))

    assert (row["name"], row["queue"], row["reason"]) == ("w", "vision", "OverLimit")
    assert row["sentence"].endswith("uses 1 onvif, 3 more would pass its limit of 2.")


def test_claims_are_in_the_order_of_their_names(world: World) -> None:
    for number in range(450):
        put(world, a_claim(f"c-{number:03d}"))
    names = [row["name"] for row in shown(claim_lines(world))]

    assert names == sorted(names)
    assert len(names) == 452
