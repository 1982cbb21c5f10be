"""Devices that are each seen by other nodes: who gets them where, and how their slices change."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from local_cluster.api import Component
from tests.e2e.driver.echoes import hosts, is_waiting, slices
from tests.e2e.driver.installation import NAMESPACE, NODES, ROOT, shared_driver, start
from tests.e2e.driver.stories import Story

CAMERAS: Mapping[str, tuple[str, ...]] = {
    "both": ("node-a", "node-b"),
    "left": ("node-a",),
    "right": ("node-b",),
}
"""Which nodes see each."""

HANDLER = """
import asyncio
import os
from pathlib import Path

from driver.handlers.sdk import Device, Handler, run


async def discover(request):
    wall = Path(request.details) / os.environ["WALL_NODE"]
    while True:
        yield [Device(id=f.name, properties={"WALL_CAMERA": f.name}) for f in wall.iterdir()]
        await asyncio.sleep(1)


run(Handler("wall", discover, shared=True))
"""


@pytest.fixture
def wall(story: Story) -> Iterator[Story]:
    """A story whose nodes see different cameras."""
    program = story.folder / "handler.py"
    program.write_text(HANDLER)
    for camera, nodes in CAMERAS.items():
        for node in nodes:
            (story.folder / node / camera).mkdir(parents=True)
    handlers = [story.cluster.start_component(handler(story, node)) for node in NODES]
    configure(story)
    yield story
    story.delete("akric", story.name)
    for one in handlers:
        one.stop()


def handler(story: Story, node: str) -> Component:
    return Component(
        name=f"handler-{story.name}",
        argv=(sys.executable, str(story.folder / "handler.py")),
        namespace=NAMESPACE,
        service_account="driver-node",
        node=node,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "WALL_NODE": node},
    )


def configure(story: Story) -> None:
    handler = {"name": "wall", "discoveryDetails": str(story.folder)}
    body = {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": story.name, "namespace": story.namespace},
        "spec": {"discoveryHandler": handler, "capacity": 2},
    }
    story.cluster.apply(body)


def seen(story: Story) -> dict[str, tuple[str, ...]]:
    """The nodes of each camera, as slices or their devices say."""
    found: dict[str, tuple[str, ...]] = {}
    for slice_ in slices(story):
        spec = slice_["spec"]
        for device in spec.get("devices", ()):
            place = {"spec": device} if spec.get("perDeviceNodeSelection") else slice_
            found[device["attributes"]["WALL_CAMERA"]["string"]] = tuple(hosts(place))
    return found


def is_as_now(story: Story) -> bool:
    """Whether slices are as this version writes them here: the API server may drop the field."""
    if story.cluster.settings.has_dra_by_hand:
        return is_grouped(story)
    return {bool(s["spec"].get("perDeviceNodeSelection")) for s in slices(story)} == {True}


def is_grouped(story: Story) -> bool:
    return [bool(s["spec"].get("perDeviceNodeSelection")) for s in slices(story)] == [False] * 3


def use(story: Story, pod: str, camera: str, node: str | None = None) -> None:
    """A pod with a claim for this camera."""
    wanted = f'device.attributes["moorage.dev"].WALL_CAMERA == "{camera}"'
    exactly = {"deviceClassName": story.name, "selectors": [{"cel": {"expression": wanted}}]}
    claim: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": pod},
        "spec": {"devices": {"requests": [{"name": "disk", "exactly": exactly}]}},
    }
    story.cluster.apply(claim, namespace=story.namespace)
    command = ["sh", "-c", "env | grep WALL_CAMERA; exec sleep 100000"]
    story.pod(pod, claim=pod, node=node, container={"command": command})


def test_each_camera_is_used_where_it_is_seen_and_stays_through_an_upgrade(wall: Story) -> None:
    before = each_camera_is_used_where_it_is_seen(wall)

    with slices_as_earlier_versions_have_them(wall):
        use(wall, "left-2", "left")
        wall.wait_running("left-2")
    wall.until("the old slices are gone", lambda: is_as_now(wall))
    use(wall, "right-2", "right")
    wall.wait_running("right-2")

    assert seen(wall) == CAMERAS
    assert (wall.pod_node("left-2"), wall.pod_node("right-2")) == NODES
    assert allocations(wall) == before
    assert is_waiting(wall, "astray")


def each_camera_is_used_where_it_is_seen(wall: Story) -> dict[str, Any]:
    """Returns what each claim got."""
    wall.until("each camera is for its nodes", lambda: seen(wall) == CAMERAS)
    wall.until("its devices say themselves who sees them", lambda: is_as_now(wall))
    for camera in CAMERAS:
        use(wall, camera, camera)
    for camera, nodes in CAMERAS.items():
        wall.wait_running(camera)
        assert f"WALL_CAMERA={camera}" in wall.read(camera)
        assert wall.pod_node(camera) in nodes
    use(wall, "astray", "left", "node-b")
    wall.until("where it is not seen nobody gets it", lambda: is_waiting(wall, "astray"))
    return allocations(wall)


@contextmanager
def slices_as_earlier_versions_have_them(wall: Story) -> Iterator[None]:
    wall.drivers.shared.stop()
    earlier = shared_driver("driver-shared-grouping")
    earlier = replace(earlier, argv=(*earlier.argv, "--group-by-nodes"))
    grouping = start(wall.cluster, earlier)
    try:
        wall.until("there is a slice for each set of nodes", lambda: is_grouped(wall))
        assert seen(wall) == CAMERAS
        yield
    finally:
        grouping.stop()
        wall.drivers.shared.start()


def allocations(story: Story) -> dict[str, Any]:
    """What each claim of this story got."""
    found = (story.get("resourceclaim", camera) for camera in CAMERAS)
    return {claim["metadata"]["name"]: claim["status"]["allocation"] for claim in found}
