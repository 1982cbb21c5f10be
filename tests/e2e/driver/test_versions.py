"""The driver on a cluster that knows less of DRA: Kubernetes 1.34's features, chosen by hand."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from local_cluster import namespaces
from local_cluster.api import Cluster, ClusterSettings, Profile
from tests.e2e.driver import installation
from tests.e2e.driver.installation import ROOT, Drivers
from tests.e2e.driver.stories import Story, told


@contextmanager
def a_story(settings: ClusterSettings) -> Iterator[Story]:
    """A story on a cluster of its own, with one node."""
    cluster = Cluster.up(settings)
    try:
        drivers = start_drivers(cluster)
        namespace = "story"
        namespaces.create(cluster, namespace)
        with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
            name = f"disk-{secrets.token_hex(3)}"
            with told(Story(cluster, drivers, namespace, name, Path(folder))) as one:
                yield one
    finally:
        cluster.down(purge=True)


def start_drivers(cluster: Cluster) -> Drivers:
    installation.install_objects(cluster)
    driver = installation.node_driver("node-a")
    node = cluster.start_component(replace(driver, argv=(*driver.argv, "--path", "dra")))
    drivers = Drivers({"node-a": node}, cluster.start_component(installation.shared_driver()))
    node.wait_ready()
    return drivers


def work_dir(name: str) -> Path:
    return ROOT / f".cluster-{name}-{os.getpid()}"


def test_with_1_34s_features_each_slot_is_a_device_and_no_taint_is_kept() -> None:
    settings = ClusterSettings(work_dir=work_dir("dra"), nodes=1, profile=Profile.DRA_1_34)
    with a_story(settings) as story:
        disk = story.plug("one of two uses")
        story.configure(capacity=2)
        for number in ("1", "2"):
            story.claim(f"disk-{number}")
            story.pod(f"reader-{number}", claim=f"disk-{number}")
        for number in ("1", "2"):
            story.wait_running(f"reader-{number}")
        assert_two_devices_of_one_instance(story)

        disk.detach()

        story.until("it is away", lambda: story.instances()[0]["spec"]["nodes"] == [])
        assert_two_devices_of_one_instance(story)
        for number in ("1", "2"):
            story.delete("pod", f"reader-{number}")
            story.delete("resourceclaim", f"disk-{number}")
        story.until("it is gone", lambda: not story.devices() and not story.instances())


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
