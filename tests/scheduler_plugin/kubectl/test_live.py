"""`kubectl moorage` of a cluster, as users with and without rights ask it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.listed_cluster import FakeCluster, fake_cluster
from tests.scheduler_plugin.asking.test_snapshots import raw
from tests.scheduler_plugin.builders import a_claim_object, a_pod_object, a_request

IMAGE = "registry.example:5000/moorage:0.1.0@sha256:abc"


def an_event(note: str, uid: str, when: str, **about: str) -> dict[str, Any]:
    regarding = {"kind": "Pod", "name": "b", "namespace": "default", "uid": uid, **about}
    return {
        "metadata": {"namespace": "default", "name": note, "creationTimestamp": when},
        "regarding": regarding,
        "reason": "OverLimit",
        "note": note,
        "eventTime": when,
    }


def a_deployment(*args: str) -> dict[str, Any]:
    container = {"name": "scheduler-plugin", "image": IMAGE, "args": ["serve", *args]}
    return {
        "metadata": {"namespace": "moorage-system", "name": "moorage-scheduler"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def a_cluster(**more: Any) -> FakeCluster:
    objects = raw()
    objects["resourceclaims"].append(
        a_claim_object("door", namespace="team", requests=[a_request()])
    )
    objects["resourceclaims"][0]["metadata"]["labels"]["floor"] = "two"
    old, new = "2020-01-01T00:00:00.000000Z", "2026-11-21T00:00:00.000000Z"
    objects["events"] = [
        an_event("of the pod", "uid-of-b", new),
        an_event("of an earlier pod", "another", old),
    ]
    objects["deployments"] = [a_deployment()]
    for pod in objects["pods"]:
        pod["metadata"].setdefault("namespace", "default")
        pod["metadata"]["uid"] = f"uid-of-{pod['metadata']['name']}"
    return FakeCluster(objects, **more)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("claims",), ["default/cam", "default/more"]),
        (("claims", "-n", "team"), ["team/door"]),
        (("claims", "-A"), ["default/cam", "default/more", "team/door"]),
        (("-A", "claims", "-l", "floor=two"), ["default/cam"]),
    ],
)
async def test_claims_are_those_of_the_current_namespace_unless_others_are_asked_for(
    words: tuple[str, ...], found: list[str], tmp_path: Path
) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        status, out, err = await cluster.ask(*words, "-o", "json")

    assert (status, err) == (0, "")
    assert [f"{row['namespace']}/{row['name']}" for row in json.loads(out)] == found


async def test_no_claim_in_a_namespace_is_a_sentence(tmp_path: Path) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        answer = await cluster.ask("claims", "-n", "empty")

    assert answer == (0, "", "No accounted claims found in empty namespace.\n")


async def test_why_leaves_events_of_an_earlier_pod_of_that_name_out(tmp_path: Path) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        _, plain, _ = await cluster.ask("why", "b", "-o", "json")
        _, text, _ = await cluster.ask("why", "b")

    told = json.loads(plain)["told"]
    assert told == ["2026-11-21T00:00:00.000000Z OverLimit: of the pod"]
    (line,) = (line for line in text.splitlines() if "of the pod" in line)
    assert line.endswith(" ago OverLimit: of the pod")
    assert "2026-11-21T00" not in text


async def test_why_accepts_a_pod_as_kubectl_names_it(tmp_path: Path) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        found = await cluster.ask("why", "pod/b", "-o", "json")
        same = await cluster.ask("why", "b", "-o", "json")

    assert found[0] == 0
    assert found == same


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("why", "job/b"), '"job/b" does not name a pod: give NAME or pod/NAME.'),
        (("claims", "-n", "a/b"), '"a/b" is not a valid name of a namespace: '),
        (("version", "--release-namespace=a/b"), '"a/b" is not a valid name of a namespace: '),
    ],
)
async def test_a_name_that_can_be_none_is_refused_before_the_cluster_is_asked(
    words: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        status, out, err = await cluster.ask(*words)

    assert (status, out, cluster.asked) == (2, "", [])
    assert err.startswith(f"kubectl moorage {words[0]}: {sentence}")


async def test_why_of_a_pod_that_is_gone_tells_its_events(tmp_path: Path) -> None:
    cluster = a_cluster()
    cluster.objects["pods"].pop()
    async with fake_cluster(tmp_path, cluster):
        status, out, _ = await cluster.ask("why", "b", "-o", "json")

    found = json.loads(out)
    assert (status, found["reason"], len(found["told"])) == (0, "Gone", 2)


OF_ONE_NAMESPACE = frozenset({"pods", "resourceclaims", "instances", "configurations", "events"})
OF_NO_NAMESPACE = frozenset({"queues", "namespaces", "deviceclasses", "resourceslices"})


def refused_at_its_gate() -> dict[str, Any]:
    pod = a_pod_object("b", queue="vision", claims=("more",))
    pod["metadata"] |= {"namespace": "default", "uid": "uid-of-b"}
    condition = {"type": "moorage.dev/Admitted", "status": "False", "reason": "OverLimit"}
    pod["status"]["conditions"] = [{**condition, "message": "Queue vision is full."}]
    return pod


async def test_why_with_view_in_one_namespace_tells_what_the_plugin_told(tmp_path: Path) -> None:
    cluster = a_cluster(forbidden=OF_ONE_NAMESPACE, hidden=OF_NO_NAMESPACE)
    cluster.objects["pods"][:] = [refused_at_its_gate()]
    async with fake_cluster(tmp_path, cluster):
        status, plain, _ = await cluster.ask("why", "b", "-o", "json")
        _, text, _ = await cluster.ask("why", "b")

    found = json.loads(plain)
    assert status == 0
    assert (found["reason"], found["sentence"]) == ("OverLimit", "Queue vision is full.")
    assert found["queue"] == "vision"
    assert found["claims"] == [
        "ResourceClaim default/more is not allocated, and its label names no queue."
    ]
    assert (found["rules"], found["remedies"]) == ([], [])
    assert found["told"][-1].endswith("OverLimit: of the pod")
    *unread, meaning = found["not_read"]
    kinds = {line.partition(":")[0] for line in unread}
    assert "pods of all namespaces" in kinds
    assert kinds >= OF_NO_NAMESPACE
    assert all("is forbidden" in line for line in unread)
    assert meaning.startswith("So this command checks nothing.")
    assert "Not read:" in text
    assert all(f"  {line}" in text.splitlines() for line in found["not_read"])


async def test_events_of_the_core_group_are_told_where_the_others_may_not_be_read(
    tmp_path: Path,
) -> None:
    """Which Kubernetes' own ClusterRole `view` has."""
    cluster = a_cluster(hidden_groups=frozenset({"events.k8s.io"}))
    (event, _) = cluster.objects["events"]
    event["involvedObject"] = event.pop("regarding")
    event["message"] = event.pop("note")
    async with fake_cluster(tmp_path, cluster):
        _, out, _ = await cluster.ask("why", "b", "-o", "json")

    assert json.loads(out)["told"][-1].endswith("OverLimit: of the pod")


async def test_versions_are_those_of_the_client_the_release_and_the_cluster(
    tmp_path: Path,
) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        status, out, _ = await cluster.ask("version", "-o", "json")
        _, text, _ = await cluster.ask("version")

    found = json.loads(out)
    assert (status, found["serverVersion"], found["serverImage"]) == (0, "0.1.0", IMAGE)
    assert found["kubernetesVersion"] == "v1.36.3"
    assert f"Server Version: 0.1.0 ({IMAGE})" in text.splitlines()


@pytest.mark.parametrize(
    ("hidden", "status", "sentence"),
    [
        (frozenset(), 1, "there is no Deployment moorage-system/moorage-scheduler"),
        (frozenset({"deployments"}), 2, "deployments is forbidden"),
    ],
)
async def test_a_version_that_cannot_be_read_is_said_beside_the_others(
    hidden: frozenset[str], status: int, sentence: str, tmp_path: Path
) -> None:
    cluster = a_cluster(hidden=hidden)
    cluster.objects["deployments"].clear()
    async with fake_cluster(tmp_path, cluster):
        found, out, err = await cluster.ask("version")

    assert found == status
    assert out.startswith("Client Version: ")
    assert sentence in err
