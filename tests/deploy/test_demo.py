"""The demo: the objects that a user may copy, and what it shows of a refusal."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml

from moorage_demo.__main__ import kept_cluster
from moorage_demo.queues import sentence_in
from moorage_demo.scene import OBJECTS
from moorage_demo.slots import CAMERA, DOOR
from moorage_demo.table import Table
from scheduler_plugin.objects.api import parse_queue

DENIED = (
    'ClaimSharingDenied: ResourceClaim default/my-disk belongs to queue "vision", which does not'
    ' share its claims with queue "robots"'
)
OVER_LIMIT = (
    'OverLimit: ResourceClaim default/second-disk does not fit: queue "research", which is above'
    ' queue "robots", uses 1 disk, 1 more would pass its limit of 1'
)
PREEMPTION = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
FILES = sorted(OBJECTS.rglob("*.yaml"))
DOCUMENTS = [document for path in FILES for document in yaml.safe_load_all(path.read_text())]


@pytest.mark.parametrize("sentence", [DENIED, OVER_LIMIT])
@pytest.mark.parametrize(
    "message",
    [
        "0/2 nodes are available: 2 {}.",
        f"0/2 nodes are available: 2 {{}}. {PREEMPTION}",
        "0/2 nodes are available: 1 {}, 1 Insufficient akri.sh/camera-317a9c. " + PREEMPTION,
        "0/2 nodes are available: 1 {}, 1 node(s) didn't match Pod's node affinity/selector.",
        "0/2 nodes are available: 1 {}, 1 cannot allocate all claims. still not schedulable,"
        f" {PREEMPTION}",
        "0/2 nodes are available: 1 resourceclaim not available on the node, 1 {}. still not"
        f" schedulable, {PREEMPTION}",
    ],
)
def test_the_plugin_s_sentence_is_shown_without_kube_scheduler_s(
    message: str, sentence: str
) -> None:
    assert sentence_in(message.format(sentence)) == f"{sentence}."


def test_another_refusal_is_shown_whole() -> None:
    message = "0/2 nodes are available: 2 cannot allocate all claims."

    assert sentence_in(message) == message


def test_each_object_is_explained_where_it_stands() -> None:
    for path in FILES:
        assert path.read_text().startswith("# "), path.name


def test_queues_are_as_the_plugin_reads_them() -> None:
    queues = [parse_queue(found) for found in DOCUMENTS if found["kind"] == "Queue"]

    assert {queue.name for queue in queues} == {"research", "robots", "vision"}


def test_the_namespace_of_the_pods_may_use_the_teams_queues_alone() -> None:
    queues = [parse_queue(found) for found in DOCUMENTS if found["kind"] == "Queue"]
    labels = {"kubernetes.io/metadata.name": "default"}

    assert {queue.name for queue in queues if queue.admits(labels)} == {"robots", "vision"}


def test_pods_name_the_scheduler_and_a_queue() -> None:
    pods = [found for found in DOCUMENTS if found["kind"] == "Pod"]

    assert pods
    for pod in pods:
        assert pod["spec"]["schedulerName"] == "moorage"
        assert pod["metadata"]["labels"]["moorage.dev/queue"] in ("vision", "robots")


def test_the_camera_s_pods_name_the_instance_that_akri_would_make() -> None:
    (camera,) = (found for found in DOCUMENTS if found["metadata"]["name"] == "camera")
    (word,) = yaml.safe_load(camera["spec"]["discoveryHandler"]["discoveryDetails"])["descriptions"]
    digest = hashlib.blake2b(word.encode(), digest_size=3).hexdigest()
    asked = {
        resource
        for found in DOCUMENTS
        if found["kind"] == "Pod"
        for resource in found["spec"]["containers"][0]["resources"].get("limits", {})
    }

    assert f"camera-{digest}" == DOOR
    assert asked == {f"akri.sh/{CAMERA}", f"akri.sh/{DOOR}"}


def test_a_long_sentence_goes_on_below(capsys: pytest.CaptureFixture[str]) -> None:
    Table().row("refused", "Pod latecomer", DENIED)

    lines = capsys.readouterr().out.splitlines()
    start = lines[0].index("ClaimSharingDenied")
    assert " ".join(line[start:] for line in lines) == DENIED
    assert all(not line[:start].strip() for line in lines[1:])


def test_a_cluster_that_is_not_there_is_not_kept(tmp_path: Path) -> None:
    assert kept_cluster(tmp_path) is None
