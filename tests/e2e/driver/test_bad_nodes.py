"""Nodes lose their power, and disks are full or refuse to be written: nothing granted is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster.api import Cluster
from local_cluster.handles import Node
from tests.e2e.driver.stories import Story

FOLDER = "/var/lib/kubelet/plugins/moorage.dev"


def test_a_node_that_boots_again_prepares_what_is_used_and_frees_what_is_not(
    story: Story, cluster: Cluster
) -> None:
    for name in ("stays", "goes"):
        story.plug("still there")
        story.claim(name)
        story.pod(name, claim=name, node="node-b")
    story.configure()
    for name in ("stays", "goes"):
        story.wait_running(name)
    uids = {name: story.claim_uid(name) for name in ("stays", "goes")}
    before = story.container("stays")["containerID"]
    left = {path.name: path.read_text() for uid in uids.values() for path in _files(story, uid)}

    cluster.power_off("node-b")
    cluster.kubectl("delete", "pod", "goes", "-n", story.namespace, "--force", "--grace-period=0")
    story.delete("resourceclaim", "goes")
    cluster.reconfigure()
    folder = cluster.node("node-b").path("/run/cdi")
    folder.mkdir(exist_ok=True)
    for name, text in left.items():  # as in a folder that outlives a boot, such as /etc/cdi
        (folder / name).write_text(text)
    story.drivers.nodes["node-b"].start()

    story.until("it runs in a new container", lambda: _runs_anew(story, before))
    assert story.read("stays").splitlines()[-1] == "still there"
    assert len(story.cdi_files(uids["stays"], "node-b")) == 1
    # The kubelet looks for claims of pods that are gone once a minute: the device waits no longer.
    story.claim("next")
    story.pod("next", claim="next", node="node-b")
    story.wait_running("next")
    assert not story.cdi_files(uids["goes"], "node-b")


def _files(story: Story, uid: str) -> list[Path]:
    return story.cdi_files(uid, "node-b")


def _runs_anew(story: Story, before: str) -> bool:
    status = story.container("stays")
    return status["containerID"] != before and "running" in status["state"]


@pytest.fixture
def disk(story: Story, cluster: Cluster) -> Iterator[Node]:
    """The driver's folder on node-a is a small disk of its own."""
    node, driver = cluster.node("node-a"), story.drivers.nodes["node-a"]
    driver.stop()
    node.exec(("mount", "-t", "tmpfs", "-o", "size=128k", "moorage-test", FOLDER))
    driver.start()
    driver.wait_ready()
    yield node
    driver.stop()
    node.exec(("umount", FOLDER))
    driver.start()
    driver.wait_ready()


def test_on_a_full_or_read_only_disk_nothing_is_lost_and_all_goes_on_once_it_is_mended(
    story: Story, disk: Node
) -> None:
    story.plug("kept")
    story.configure(capacity=4)
    for name in ("first", "second", "third"):
        story.claim(name)
    story.pod("first", claim="first", node="node-a")
    story.wait_running("first")

    nothing_fits(story, disk)
    nothing_is_written(story, disk)

    for name in ("second", "third"):
        story.delete("pod", name)
        story.wait_unprepared(story.claim_uid(name), "node-a")


def nothing_fits(story: Story, disk: Node) -> None:
    """What is prepared stays so, through a restart, too; what comes waits for room."""
    before, kept = story.container("first"), _records(story)
    disk.exec(("dd", "if=/dev/zero", f"of={FOLDER}/full", "bs=1k"), check=False)
    story.pod("second", claim="second", node="node-a")
    story.until("its pod says why", lambda: story.tells("second", "No space left"))
    story.drivers.nodes["node-a"].kill()
    story.drivers.nodes["node-a"].wait_ready()
    assert (story.container("first"), _records(story)) == (before, kept)
    disk.exec(("rm", f"{FOLDER}/full"))
    story.wait_running("second")


def _records(story: Story) -> list[str]:
    return [path.read_text() for path in story.cdi_files(story.claim_uid("first"), "node-a")]


def nothing_is_written(story: Story, disk: Node) -> None:
    """Nothing is prepared nor unprepared until the disk is mended, and then both."""
    uid = story.claim_uid("first")
    # Over itself: what the driver has open keeps the disk from being mounted anew.
    disk.exec(("mount", "--bind", FOLDER, FOLDER))
    disk.exec(("mount", "-o", "remount,bind,ro", FOLDER))
    story.pod("third", claim="third", node="node-a")
    story.until("its pod says why", lambda: story.tells("third", "Read-only"))
    story.cluster.kubectl("delete", "pod", "first", "-n", story.namespace, "--wait=false")
    driver = story.drivers.nodes["node-a"]
    story.until("it cannot be unprepared", lambda: f"(UID {uid}) failed" in driver.logs())
    assert story.cdi_files(uid, "node-a")
    disk.exec(("umount", FOLDER))
    story.wait_running("third")
    story.wait_unprepared(uid, "node-a")
    story.until("its pod is gone", lambda: _is_gone(story, "first"))


def _is_gone(story: Story, pod: str) -> bool:
    return story.cluster.get("pod", pod, namespace=story.namespace) is None
