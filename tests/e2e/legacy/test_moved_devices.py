"""What the device plugin gave follows its device, though the kubelet keeps its first answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from local_cluster import debian
from local_cluster.api import BUSYBOX_IMAGE
from local_cluster.component_handles import ComponentHandle
from local_cluster.loop_devices import LoopDevice
from tests.e2e.driver import lives
from tests.e2e.driver.installation import node_driver
from tests.e2e.driver.stories import Story
from tests.e2e.driver.test_moved_devices import (
    SCRIPT,
    SERIAL,
    a_disk,
    event,
    plug,
    reads_again,
    restart,
)
from tests.e2e.driver.test_udevd import udevd


@pytest.fixture(autouse=True, scope="module")
def installed_udevd() -> None:
    debian.ensure_packages(debian.UDEV_PACKAGES)


@pytest.fixture
def disk_story(disks: Story) -> Iterator[Story]:
    """A Configuration of disks that are known by their files, and a udevd that tells them."""
    details = json.dumps({"udevRules": [disks.rule], "identity": "serial"})
    disks.cluster.apply(lives.configuration(disks, disks.name, "udev", details))
    with udevd(disks, SERIAL):
        yield disks
        disks.end()


def begin(story: Story) -> LoopDevice:
    """Plug the pod's disk, and wait until it has read it."""
    disk = plug(story, a_disk(story, "mine"))
    container = {
        "name": "main",
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", SCRIPT],
        "resources": {"limits": {f"akri.sh/{story.name}": "1"}},
    }
    spec = {
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"kubernetes.io/hostname": "node-a"},
        "containers": [container],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "first"}, "spec": spec}
    story.cluster.apply(body, namespace=story.namespace)
    story.wait_running("first")
    assert story.read("first").splitlines()[-1] == "mine"
    return disk


def wait_linked(story: Story, disk: LoopDevice | None) -> None:
    """Wait until the link that the kubelet was answered leads to this disk, or nowhere."""
    folder = story.cluster.node("node-a").path("/run/cdi") / "moorage.dev"

    def leads() -> bool:
        found = [link.readlink() for link in folder.glob(f"{story.name}-*/device-*")]
        return found == [disk.path] if disk else "moorage.dev" in str(found)

    story.until(f"the link leads to {disk}", leads)


def test_a_container_that_is_started_anew_gets_its_disk_where_it_is_now(disk_story: Story) -> None:
    before = begin(disk_story)

    before.detach()
    now = plug(disk_story, disk_story.folder / "mine")
    wait_linked(disk_story, now)

    event(disk_story, "first", "Device", f"hold {before.path}")
    restart(disk_story, "first")
    seen = reads_again(disk_story, "first")
    assert (seen[0], seen[-1]) == (f"UDEV_DEVNODE={now.path}", "mine")


def test_no_container_is_started_with_the_disk_that_is_where_its_own_was(
    disk_story: Story,
) -> None:
    before = begin(disk_story)

    before.detach()
    before.attach(a_disk(disk_story, "other"))
    wait_linked(disk_story, None)

    event(disk_story, "first", "Device", f"is Instance {disk_story.name}-")
    restart(disk_story, "first")
    event(disk_story, "first", "Failed", "Error: failed to")
    plug(disk_story, disk_story.folder / "mine")
    assert reads_again(disk_story, "first")[-1] == "mine"


@pytest.fixture
def second_driver(disk_story: Story) -> Iterator[ComponentHandle]:
    """Another driver of the same node, as during an update."""
    first = node_driver("node-a", "--path", "auto")
    env = {"POD_UID": "00000000-1111-4222-8333-444444444444"}
    second = replace(first, name="driver-node-2", env=env, ready=None)
    handle = disk_story.cluster.start_component(second)
    yield handle
    handle.stop()


def cdi_files(story: Story) -> list[Path]:
    """What is in the node's CDI folder of this story's Instance, or half written."""
    folder = story.cluster.node("node-a").path("/run/cdi")
    return [p for pattern in (f"akri.sh-{story.name}-*", ".*") for p in folder.glob(pattern)]


def test_two_drivers_of_an_update_keep_one_file_right(
    disk_story: Story, second_driver: ComponentHandle
) -> None:
    offers = "devices are offered path=device-plugin"
    disk_story.until("the second offers, too", lambda: offers in second_driver.logs())
    before = begin(disk_story)

    before.detach()
    now = plug(disk_story, disk_story.folder / "mine")
    wait_linked(disk_story, now)
    restart(disk_story, "first")
    assert reads_again(disk_story, "first")[-1] == "mine"

    (file,) = cdi_files(disk_story)
    file.unlink()
    disk_story.until("one of them writes it again", lambda: cdi_files(disk_story) == [file])
    second_driver.stop()
    restart(disk_story, "first")
    assert reads_again(disk_story, "first", 2)[-1] == "mine"
    assert cdi_files(disk_story) == [file]
    assert "Traceback" not in second_driver.logs()
