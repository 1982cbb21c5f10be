"""A camera and a machine that others wrote, found on the network by both nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local_cluster.layout import layout_of
from tests.driver.discovery.cameras import CameraProcess
from tests.driver.discovery.machines import start
from tests.e2e.driver.installation import NODES
from tests.e2e.driver.stories import Story

OFFLINE_SINCE = "moorage.dev/offline-since"


def beside(story: Story) -> tuple[str, ...]:
    """Runs a command in the network of the nodes."""
    namespace = layout_of(story.cluster.work_dir).network_namespace
    return ("nsenter", f"--net=/run/netns/{namespace}")


@contextmanager
def camera(story: Story, *login: str) -> Iterator[CameraProcess]:
    """A camera, with user and password if it wants any."""
    address = ("192.0.2.1/24", "192.0.2.2")
    process = CameraProcess("anothers", *address, *login, beside=beside(story))
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def press_8(story: Story) -> Iterator[None]:
    process = start(8, beside=beside(story))
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def configure(story: Story, name: str, handler: str, details: Any) -> None:
    told = {"name": handler, "discoveryDetails": json.dumps(details)}
    body = {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": story.namespace},
        "spec": {"capacity": 2, "discoveryHandler": told},
    }
    story.cluster.apply(body)


def instance(story: Story, name: str) -> dict[str, Any] | None:
    """The one Instance of a Configuration, as soon as both nodes see it."""
    found = [i for i in story.instances() if i["spec"]["configurationName"] == name]
    seen = len(found) == 1 and sorted(found[0]["spec"].get("nodes", ())) == sorted(NODES)
    return found[0] if seen else None


def is_offline(story: Story, name: str) -> bool:
    found = [i for i in story.instances() if i["spec"]["configurationName"] == name]
    return [OFFLINE_SINCE in i["metadata"].get("annotations", {}) for i in found] == [True]


def test_a_camera_and_a_machine_come_and_go(story: Story) -> None:
    press = f"{story.name}-press"
    method = {"standard": {"discoveryUrls": ["opc.tcp://127.0.0.1:4861/"]}}
    with camera(story) as filmed, press_8(story):
        configure(story, story.name, "onvif", {"uuids": {"items": [filmed.uuid]}})
        configure(story, press, "opcua", {"opcuaDiscoveryMethod": method})

        found = story.until("the camera is found", lambda: instance(story, story.name))
        machine = story.until("the machine is found", lambda: instance(story, press))

        told = found["spec"]["brokerProperties"]
        assert found["spec"]["shared"] is True
        assert told["ONVIF_DEVICE_UUID"] == filmed.uuid
        assert told["ONVIF_DEVICE_SERVICE_URL"].startswith("http://192.0.2.2:8080/")
        assert told["ONVIF_DEVICE_MANUFACTURER"] == "PythonCam"
        assert machine["spec"]["brokerProperties"]["OPCUA_APPLICATION_NAME"] == "Press 8"

    story.until("the camera is offline", lambda: is_offline(story, story.name) or None)
    story.until("the machine is offline", lambda: is_offline(story, press) or None)
