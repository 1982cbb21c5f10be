"""What ClusterWorld knows of nodes and of all pods on them, and who hears of it.

Objects are noted as an own write's answer would be, or observed as a watch brings them.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.calls.api import ApiClient
from scheduler_plugin.accounting.world_changes import PodChanged, WorldChange
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.names import POD_GROUP_LABEL
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.projections import project_pod
from tests.scheduler_plugin.builders import SETTINGS, a_node_object, a_pod_object, pod_uid
from tests.scheduler_plugin.cluster.test_stores import FakeClient, versioned

CPU = {"cpu": "1"}
ASKED = {"cpu": 1000, "pods": 1000}
ELSEWHERE = {"schedulerName": "default-scheduler"}


@pytest.fixture
def cluster() -> ClusterWorld:
    return a_cluster()


def a_cluster(**options: Any) -> ClusterWorld:
    found = ClusterWorld(cast(ApiClient, FakeClient()), SETTINGS, **options)
    for kind in found.kinds:
        kind.feed()
    return found


@pytest.fixture
def heard(cluster: ClusterWorld) -> list[WorldChange]:
    found: list[WorldChange] = []
    cluster.subscribe(found.append)
    return found


def a_bystander(name: str = "b", **overrides: Any) -> dict[str, Any]:
    return a_pod_object(name, **{"node": "n", "requests": CPU, "spec": ELSEWHERE, **overrides})


def note_node(cluster: ClusterWorld, version: int, **overrides: Any) -> None:
    (kind,) = (kind for kind in cluster.kinds if str(kind) == "nodes of v1")
    kind.store.note(versioned(a_node_object("n", **overrides), version))


def test_a_bystander_takes_of_its_node_and_nobody_hears(
    cluster: ClusterWorld, heard: list[WorldChange]
) -> None:
    cluster.note_pod(versioned(a_bystander(), 5))

    assert cluster.inventory.nodes.used("n") == ASKED
    assert list(cluster.world.facts.pods()) == []
    terminating = a_bystander()
    terminating["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    cluster.note_pod(versioned(terminating, 6))
    assert cluster.inventory.nodes.terminating("n") == {pod_uid("b")}
    cluster.kinds.pods.store.take_deletion(versioned(terminating, 7))
    assert cluster.inventory.nodes.used("n") == {}
    assert heard == []


def test_a_bystander_that_ended_takes_nothing_any_more(
    cluster: ClusterWorld, heard: list[WorldChange]
) -> None:
    cluster.note_pod(versioned(a_bystander(), 5))
    cluster.note_pod(versioned(a_bystander(phase="Succeeded"), 6))

    assert cluster.inventory.nodes.used("n") == {}
    assert heard == []


def test_a_pod_that_matters_is_in_the_world_and_on_its_node(
    cluster: ClusterWorld, heard: list[WorldChange]
) -> None:
    cluster.note_pod(versioned(a_pod_object(claims=["cam"], requests=CPU), 5))
    assert cluster.inventory.nodes.used("n") == {}
    cluster.note_pod(versioned(a_pod_object(claims=["cam"], requests=CPU, node="n"), 6))

    assert cluster.inventory.nodes.used("n") == ASKED
    assert heard == [PodChanged(pod_uid("a"))] * 2
    ended = a_pod_object(claims=["cam"], requests=CPU, node="n", phase="Failed")
    cluster.note_pod(versioned(ended, 7))
    assert cluster.inventory.nodes.used("n") == {}
    assert len(heard) == 3


def test_a_pod_that_is_bound_and_matters_no_more_becomes_a_bystander(
    cluster: ClusterWorld, heard: list[WorldChange]
) -> None:
    cluster.note_pod(versioned(a_pod_object(requests=CPU), 5))
    cluster.note_pod(versioned(a_pod_object(requests=CPU, node="n"), 6))

    assert list(cluster.world.facts.pods()) == []
    assert heard == [PodChanged(pod_uid("a"))] * 2
    assert cluster.inventory.nodes.used("n") == ASKED
    resized = a_pod_object(requests={"cpu": "2"}, node="n")
    cluster.note_pod(versioned(resized, 7))
    assert cluster.inventory.nodes.used("n") == {"cpu": 2000, "pods": 1000}
    assert len(heard) == 2


def test_a_bystander_may_come_to_matter(cluster: ClusterWorld, heard: list[WorldChange]) -> None:
    grouped = {POD_GROUP_LABEL: "g"}
    cluster.note_pod(versioned(a_pod_object(requests=CPU, node="n"), 5))
    cluster.note_pod(versioned(a_pod_object(requests=CPU, node="n", labels=grouped), 6))

    assert [pod.group for pod in cluster.world.facts.pods()] == ["g"]
    assert cluster.inventory.nodes.used("n") == ASKED
    assert heard == [PodChanged(pod_uid("a"))]


VERSIONS: dict[str, dict[str, Any] | None] = {
    "waits": {},
    "waits elsewhere": {"spec": ELSEWHERE},
    "bystander": {"node": "n"},
    "bystander of another UID": {"node": "m", "uid": "other-"},
    "user": {"node": "n", "claims": ["cam"]},
    "of a group": {"node": "n", "labels": {POD_GROUP_LABEL: "g"}},
    "ended": {"node": "n", "phase": "Succeeded"},
    "user that ended": {"node": "n", "claims": ["cam"], "phase": "Failed"},
    "gone": None,
}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(sorted(VERSIONS)))))
def test_only_the_newest_version_of_each_pod_counts(history: list[tuple[str, str]]) -> None:
    cluster, newest = a_cluster(), dict[str, dict[str, Any]]()
    for number, (name, what) in enumerate(history, start=2):
        fields = VERSIONS[what]
        if fields is not None:
            uid = fields.get("uid", "uid-of-") + name
            newest[name] = a_pod_object(name, requests=CPU, **{**fields, "uid": uid})
            cluster.kinds.pods.store.take_version(versioned(newest[name], number))
        elif name in newest:
            cluster.kinds.pods.store.take_deletion(versioned(newest.pop(name), number))

    matter = [pod for body in newest.values() if (pod := project_pod(body, SETTINGS))]
    assert {pod.name: pod for pod in cluster.world.facts.pods()} == {p.name: p for p in matter}
    there = [pod_view(body, SETTINGS).on_node for body in newest.values()]
    for node in ("n", "m"):
        on_node = {pod.uid for pod in there if pod is not None and pod.node == node}
        assert set(cluster.inventory.nodes.pods_on(node)) == on_node
        assert cluster.inventory.nodes.used(node).get("cpu", 0) == 1000 * len(on_node)


def test_a_bystander_of_another_uid_takes_the_place_of_the_first(cluster: ClusterWorld) -> None:
    cluster.note_pod(versioned(a_bystander(), 5))
    cluster.note_pod(versioned(a_bystander(uid="other", requests={"cpu": "2"}), 6))

    assert list(cluster.inventory.nodes.pods_on("n")) == ["other"]
    assert cluster.inventory.nodes.used("n") == {"cpu": 2000, "pods": 1000}


async def test_a_bystander_that_is_sent_or_read_is_read_whole() -> None:
    client = FakeClient()
    cluster = ClusterWorld(cast(ApiClient, client), SETTINGS)
    obj = versioned(a_bystander(), 5)
    cluster.note_pod(obj)
    client.objects["/api/v1/namespaces/default/pods/b"] = obj

    assert isinstance(cluster.read_pod(obj), PodView)
    found = await cluster.refresh_pod("default", "b")
    assert found is not None
    assert (found.name, found.node) == ("b", "n")


def test_nodes_are_known_and_nobody_hears_of_them(
    cluster: ClusterWorld, heard: list[WorldChange]
) -> None:
    note_node(cluster, 5)
    view = cluster.inventory.nodes.get("n")
    assert view is not None
    assert not view.closed
    note_node(cluster, 6)
    assert cluster.inventory.nodes.get("n") == view

    note_node(cluster, 7, unschedulable=True)
    view = cluster.inventory.nodes.get("n")
    assert view is not None
    assert view.closed
    (kind,) = (kind for kind in cluster.kinds if str(kind) == "nodes of v1")
    kind.store.take_deletion(versioned(a_node_object("n"), 8))
    assert cluster.inventory.nodes.get("n") is None
    assert heard == []


def test_without_nodes_neither_they_nor_bystanders_are_kept() -> None:
    cluster = a_cluster(follows_nodes=False)
    cluster.note_pod(versioned(a_bystander(), 5))
    cluster.note_pod(versioned(a_pod_object(claims=["cam"], node="n"), 6))

    assert "nodes of v1" not in map(str, cluster.kinds)
    assert len(cluster.kinds.pods.store) == 1
    assert list(cluster.inventory.nodes) == []
    assert cluster.inventory.nodes.used("n") == {}
    assert len(list(cluster.world.facts.pods())) == 1
