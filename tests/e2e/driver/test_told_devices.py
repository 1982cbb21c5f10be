"""What people and programs are told of prepared devices: on claims, and in containers."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.e2e.driver.echoes import configure as configure_echo
from tests.e2e.driver.echoes import wait_published
from tests.e2e.driver.installation import NODES
from tests.e2e.driver.stories import Story


def devices(story: Story, claim: str = "disk") -> list[dict[str, Any]]:
    """What the status of a claim says of its devices."""
    found: list[dict[str, Any]] = story.get("resourceclaim", claim)["status"].get("devices", [])
    return found


def test_a_claim_says_what_was_prepared_until_it_is_deallocated(story: Story) -> None:
    disk = story.plug()
    story.configure(brokerProperties={"UDEV_FLOOR": "2"})
    story.claim()
    story.pod()
    story.wait_running()

    (device,) = story.until("the claim is told", lambda: devices(story))

    status = story.get("resourceclaim", "disk")["status"]
    (result,) = status["allocation"]["devices"]["results"]
    assert {k: device[k] for k in ("driver", "pool", "device")} == {
        k: result[k] for k in ("driver", "pool", "device")
    }
    path = f"/devices/virtual/block/{disk.name}"
    assert device["data"]["deviceNodes"] == [f"/dev/{disk.name}"]
    assert device["data"]["properties"] == {
        "UDEV_DEVNODE": f"/dev/{disk.name}",
        "UDEV_DEVPATH": path,
        "UDEV_FLOOR": "2",
    }
    story.delete("pod", "reader")
    story.until(
        "the claim is deallocated",
        lambda: "allocation" not in story.get("resourceclaim", "disk").get("status", {}),
    )
    assert "devices" not in story.get("resourceclaim", "disk")["status"]


def test_a_device_on_the_network_says_where_whichever_node_prepares_it(story: Story) -> None:
    address = {"CAMERA_URL": "rtsp://192.0.2.7:554/live"}
    configure_echo(story, capacity=2, brokerProperties=address)
    wait_published(story)
    for node in NODES:
        story.claim(f"camera-{node}")
        command = ["sh", "-c", "env | grep CAMERA; exec sleep 100000"]
        story.pod(node, claim=f"camera-{node}", node=node, container={"command": command})

    for node in NODES:
        story.wait_running(node)
        (device,) = story.until("its claim is told", partial(devices, story, f"camera-{node}"))
        assert device["networkData"] == {"ips": ["192.0.2.7/32"]}
        assert device["shareID"]
