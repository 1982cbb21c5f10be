"""What is prepared is known by the record in its CDI file, and goes where no pod has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_cluster.api import Cluster
from tests.e2e.driver.installation import node_driver, start
from tests.e2e.driver.stories import Story

RECORD = "MOORAGE_CLAIM="


@pytest.fixture
def impatient(story: Story, cluster: Cluster) -> Iterator[Any]:
    """A driver of node-a that lets go of stale claims after two seconds."""
    patient = story.drivers.nodes["node-a"]
    patient.stop()
    driver = node_driver("node-a", "--stale-claim-grace=2s")
    handle = start(cluster, replace(driver, name="driver-node-impatient"))
    handle.wait_ready()
    yield handle
    handle.stop()
    patient.start()
    patient.wait_ready()


@pytest.fixture
def running(story: Story) -> str:
    """The UID of a claim of which a pod on node-a has the device."""
    story.plug("found again")
    story.configure()
    story.claim()
    story.pod(node="node-a")
    story.wait_running()
    return story.claim_uid()


def file_of(story: Story, uid: str) -> Path:
    (file,) = story.cdi_files(uid, "node-a")
    return file


def record_of(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_entry(json.loads(file.read_text()))[0][len(RECORD) :])
    return found


def _entry(document: dict[str, Any]) -> list[str]:
    (edits,) = (d["containerEdits"] for d in document["devices"] if d["name"].endswith("_record"))
    env: list[str] = edits["env"]
    return env


def rewrite(file: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change a record; the runtime goes on to read the rest."""
    document = json.loads(file.read_text())
    _entry(document)[:] = [RECORD + json.dumps(change(record_of(file)))]
    file.write_text(json.dumps(document))


def reads(story: Story, pod: str) -> str:
    return story.read(pod).splitlines()[-1]


def test_a_file_that_somebody_removes_is_written_again(story: Story, running: str) -> None:
    """A container that is started anew finds its device, and no other claim gets it."""
    file = file_of(story, running)
    content = file.read_bytes()

    file.unlink()

    story.until("it is there again", lambda: file.is_file() and file.read_bytes() == content)
    assert reads(story, "reader") == "found again"


def test_a_claim_that_ends_without_its_file_gives_its_device_to_the_next(
    story: Story, running: str
) -> None:
    file_of(story, running).unlink()

    story.delete("pod", "reader")
    story.delete("resourceclaim", "disk")
    story.claim("next")
    story.pod("second", claim="next", node="node-a")

    story.wait_running("second")
    assert reads(story, "second") == "found again"
    assert not story.cdi_files(running, "node-a")


def test_a_record_says_boot_node_and_cluster(story: Story, cluster: Cluster, running: str) -> None:
    record = record_of(file_of(story, running))

    system, node = cluster.get("namespace", "kube-system"), cluster.get("node", "node-a")
    assert system is not None
    assert node is not None
    assert record["version"] == 1
    assert record["clusterUID"] == system["metadata"]["uid"]
    assert record["nodeUID"] == node["metadata"]["uid"]
    assert record["bootID"] == node["status"]["nodeInfo"]["bootID"]
    story.delete("pod", "reader")
    story.wait_unprepared(running, "node-a")


@pytest.mark.usefixtures("impatient")
def test_a_claim_that_the_kubelet_forgot_is_let_go_after_the_grace(
    story: Story, cluster: Cluster, running: str
) -> None:
    """Its state is gone: it leaves the container alone, and never asks to unprepare."""
    before = story.container()
    kubelet = cluster.part("kubelet-node-a")

    kubelet.kill()
    cluster.node("node-a").path("/var/lib/kubelet/dra_manager_state").unlink()
    kubelet.start()

    cluster.wait("node/node-a", "condition=Ready")
    assert story.container() == before
    assert story.cdi_files(running, "node-a")
    story.delete("pod", "reader")
    story.delete("resourceclaim", "disk")
    story.wait_unprepared(running, "node-a")
    story.claim("next")
    story.pod("second", claim="next", node="node-a")
    story.wait_running("second")
    assert reads(story, "second") == "found again"
    story.until("an Event says so", lambda: _is_told(cluster, running))


def _is_told(cluster: Cluster, uid: str) -> bool:
    events = cluster.list("events", namespace="default")
    told = (e["message"] for e in events if e["reason"] == "StaleClaimReleased")
    return any(uid in message and "does not have it" in message for message in told)


def test_a_claim_of_a_former_cluster_holds_nothing(
    story: Story, cluster: Cluster, running: str
) -> None:
    """As after `kubeadm reset` and `kubeadm join` without a reboot, which leave CDI files."""
    driver, file = story.drivers.nodes["node-a"], file_of(story, running)
    left = file.read_text()
    story.delete("pod", "reader")
    story.wait_unprepared(running, "node-a")
    driver.stop()
    file.write_text(left)
    rewrite(file, lambda record: {**record, "clusterUID": "another", "nodeUID": "another"})

    driver.start()

    story.claim("next")
    story.pod("second", claim="next", node="node-a")
    story.wait_running("second")
    assert reads(story, "second") == "found again"
    assert not story.cdi_files(running, "node-a")


def test_a_claim_of_a_former_node_object_stays_while_the_kubelet_lists_it(
    story: Story, impatient: Any, running: str
) -> None:
    """A Node object may be made anew under running containers."""
    before, file = story.container(), file_of(story, running)
    impatient.stop()
    rewrite(file, lambda record: {**record, "nodeUID": "former"})
    unlisted = a_copy(file, running, name="unlisted")

    impatient.start()

    story.until("the one that is not listed goes", lambda: not unlisted.exists())
    assert story.container() == before
    assert record_of(file)["nodeUID"] == "former"
    story.delete("pod", "reader")
    story.wait_unprepared(running, "node-a")


def a_copy(file: Path, uid: str, *, name: str) -> Path:
    """The same of a claim of another name and UID."""
    other = f"{uid[:-4]}{'0000' if uid[-4:] != '0000' else '1111'}"
    copy = file.with_name(file.name.replace(uid, other))
    copy.write_text(file.read_text().replace(uid, other))
    rewrite(copy, lambda record: {**record, "name": name})
    return copy


def test_a_record_of_a_newer_driver_is_left_alone(
    story: Story, cluster: Cluster, running: str
) -> None:
    """Rolled back to this version: what runs goes on, and nothing new is prepared beside it."""
    driver, before = story.drivers.nodes["node-a"], story.container()
    driver.stop()
    file = file_of(story, running)
    ours = record_of(file)
    rewrite(file, lambda record: {**record, "version": 2})
    newer = file.read_text()
    story.plug("another")
    story.claim("next")

    driver.start()
    story.pod("second", claim="next", node="node-a")

    why = "is of version 2, and this driver reads 1"
    story.until("its pod says why", lambda: story.tells("second", why))
    assert story.container() == before
    assert file.read_text() == newer
    driver.stop()
    rewrite(file, lambda record: ours)
    driver.start()
    story.wait_running("second")
    assert story.container() == before


def test_an_unreadable_record_is_written_anew_from_the_api_server(
    story: Story, running: str
) -> None:
    driver, before = story.drivers.nodes["node-a"], story.container()
    driver.stop()
    (file,) = story.cdi_files(running, "node-a")
    file.write_text('{"broken')

    driver.start()

    story.until("it is written anew", lambda: story.cdi_files(running, "node-a"))
    assert story.container() == before
    story.delete("pod", "reader")
    story.wait_unprepared(running, "node-a")
