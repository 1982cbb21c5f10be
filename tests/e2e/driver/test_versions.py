"""The driver on a cluster that knows less of DRA: Kubernetes 1.34's features, chosen by hand."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from local_cluster import namespaces
from local_cluster.api import Cluster, ClusterSettings, Profile
from tests.e2e import rights
from tests.e2e.driver import echoes, installation
from tests.e2e.driver.installation import NODES, ROOT, Drivers
from tests.e2e.driver.stories import Story, told


@contextmanager
def a_story(settings: ClusterSettings) -> Iterator[Story]:
    """A story on a cluster of its own."""
    cluster = Cluster.up(settings)
    try:
        drivers = start_drivers(cluster)
        namespace = "story"
        namespaces.create(cluster, namespace)
        with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
            name = f"disk-{secrets.token_hex(3)}"
            with told(Story(cluster, drivers, namespace, name, Path(folder))) as one:
                yield one
        rights.note(cluster.logs)
    finally:
        cluster.down(purge=True)


def start_drivers(cluster: Cluster) -> Drivers:
    installation.install_objects(cluster)
    node = installation.start(cluster, installation.node_driver("node-a"))
    shared = installation.start_shared(cluster)
    drivers = Drivers({"node-a": node}, shared)
    node.wait_ready()
    return drivers


def work_dir(name: str) -> Path:
    return ROOT / f".cluster-{name}-{os.getpid()}"


def test_with_1_34s_features_each_slot_is_a_device_and_no_taint_is_kept() -> None:
    settings = ClusterSettings(work_dir=work_dir("dra"), nodes=2, profile=Profile.DRA_1_34)
    with a_story(settings) as story:
        disk = story.plug("one of two uses")
        story.configure(capacity=2, offlineGracePeriod="1h")
        for number in ("1", "2"):
            story.claim(f"disk-{number}")
            story.pod(f"reader-{number}", claim=f"disk-{number}")
        for number in ("1", "2"):
            story.wait_running(f"reader-{number}")
        assert_two_devices_of_one_instance(story)
        (before,) = story.instances()

        disk.detach()

        story.until("it is away", lambda: story.instances()[0]["spec"]["nodes"] == [])
        assert_two_devices_of_one_instance(story)
        for number in ("1", "2"):
            story.delete("pod", f"reader-{number}")
            story.delete("resourceclaim", f"disk-{number}")
        story.until("no claim can get it", lambda: not story.devices())

        disk.attach(story.folder / disk.name)
        story.wait_devices(2)
        (back,) = story.until("its Instance is back", lambda: seen(story))
        assert back["metadata"]["uid"] == before["metadata"]["uid"]
        assert "moorage.dev/offline-since" not in back["metadata"]["annotations"]

        disk.detach()
        story.configure(capacity=2, offlineGracePeriod="1s")
        story.until("it is gone", lambda: not story.devices() and not story.instances())
        installation.start(story.cluster, installation.node_driver("node-b")).wait_ready()
        shares_a_device(replace(story, name="camera"))


def shares_a_device(story: Story) -> None:
    """Tell of a device that both nodes see: so many devices as it has slots."""
    echoes.configure(story, capacity=3)
    story.until("there are three", lambda: len(story.devices()) == 3)
    (instance,) = story.instances()
    name = instance["metadata"]["name"]
    assert names(story) == [f"{name}-{use}" for use in range(3)]
    story.until("it says so", lambda: story.condition(story.name, "UniqueDevices"))
    story.until("both nodes see it", lambda: echoes.seen_by(story) == list(NODES))

    users = {"user-0": "node-a", "user-1": "node-b", "user-2": "node-b", "user-3": None}
    for user, node in users.items():
        story.claim(user)
        story.pod(user, claim=user, node=node, container={"command": ["sleep", "100000"]})
        if user != "user-3":
            story.wait_running(user)
    story.until("the fourth waits", lambda: echoes.is_waiting(story, "user-3"))
    echoes.say(story.cluster, "OFFLINE")
    story.until("no node sees it", lambda: not story.instances()[0]["spec"].get("nodes"))
    for user in ("user-3", "user-0", "user-1"):
        story.delete("pod", user)
    (result,) = story.get("resourceclaim", "user-2")["status"]["allocation"]["devices"]["results"]
    story.until("only what is used stays", lambda: names(story) == [result["device"]])
    echoes.say(story.cluster, "ONLINE")
    story.until("all are back", lambda: len(names(story)) == 3)
    assert story.instances()[0]["metadata"]["uid"] == instance["metadata"]["uid"]
    story.delete("akric", story.name)
    story.delete("pod", "user-2")
    story.until("it is gone", lambda: not story.devices() and not story.instances())


def seen(story: Story) -> list[dict[str, Any]]:
    """The Instances that some node sees."""
    return [instance for instance in story.instances() if instance["spec"].get("nodes")]


def names(story: Story) -> list[str]:
    return sorted(device["name"] for device in story.devices())


def assert_two_devices_of_one_instance(story: Story) -> None:
    (instance,) = story.instances()
    name = instance["metadata"]["name"]
    devices = {device["name"]: device for device in story.devices()}
    assert devices.keys() == {f"{name}-0", f"{name}-1"}
    assert {d["attributes"]["instance"]["string"] for d in devices.values()} == {name}
    assert not any("taints" in device for device in devices.values())
    class_ = story.cluster.get("deviceclass", story.name)
    assert class_ is not None
    assert "extendedResourceName" not in class_["spec"]
