"""Claims that kube-scheduler reserves for PodGroups, once for all of their pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import CLAIM, Story, gone_is_fine

GATES = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
SERVED = {
    "1.36": ("v1alpha2", {**GATES, "GangScheduling": True}),
    "1.37": ("v1beta1", GATES),
}
"""The version of `scheduling.k8s.io` that serves the resource `podgroups`, and its gates."""

MANY = 300
"""More pods than a claim's status has room for, and than three nodes run."""


@pytest.fixture(scope="module", autouse=True)
def groups_served(plugin: Plugin) -> Iterator[None]:
    """A cluster with PodGroups of Kubernetes' own API, for which claims may be reserved."""
    found = SERVED.get(plugin.cluster.settings.kubernetes)
    if found is None:
        pytest.skip("this Kubernetes reserves no claims for PodGroups")
    version, gates = found
    runtime = {f"scheduling.k8s.io/{version}": "true"}
    with (
        plugin.cluster.reconfigured(feature_gates=gates, runtime_config=runtime),
        plugin.started_with("--leftover-grace", "2"),
    ):
        yield


def groups_path(story: Story, name: str = "") -> str:
    """Where the API server has PodGroups, from its discovery."""
    versions = story.api.get("/apis/scheduling.k8s.io")["versions"]
    for version in (each["groupVersion"] for each in versions):
        served = story.api.get(f"/apis/{version}")["resources"]
        if any(each["name"] == "podgroups" for each in served):
            path = f"/apis/{version}/namespaces/{story.namespace}/podgroups"
            return f"{path}/{name}" if name else path
    raise AssertionError("no version serves podgroups")


@pytest.fixture(autouse=True)
def groups_gone(story: Story) -> Iterator[None]:
    """Pods and groups go before the claims, as users would delete them."""
    yield
    for pod in story.all("pod"):
        with gone_is_fine():
            story.api.delete(f"{story.path('pod', pod['metadata']['name'])}?gracePeriodSeconds=0")
    story.api.delete(groups_path(story))


def a_group(story: Story, name: str, *claims: str, least: int | None = None) -> str:
    """A PodGroup that lists claims, and the UID of it."""
    listed = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    policy: dict[str, Any] = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    spec = {"schedulingPolicy": policy, "resourceClaims": listed}
    path = groups_path(story)
    version = path.removeprefix("/apis/").partition("/namespaces")[0]
    body = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
    uid: str = story.api.create(path, body)["metadata"]["uid"]
    return uid


def members(story: Story, group: str, queue: str, names: Iterable[str], **traits: Any) -> list[str]:
    """Pods of a group that use the shared claim."""
    found = list(names)
    for name in found:
        story.pod(name, queue, schedulingGroup={"podGroupName": group}, **traits)
    return found


def entries(story: Story) -> list[tuple[str, str]]:
    """Kind and name of each consumer of the claim."""
    status = story.get("claim", CLAIM).get("status", {})
    return [(entry["resource"], entry["name"]) for entry in status.get("reservedFor", ())]


def numbered(group: str, count: int) -> list[str]:
    return [f"{group}-{number}" for number in range(count)]


def wait_released(story: Story, queue: str) -> None:
    """Wait until the claim has no device, no owner, and the queue no charge."""
    story.until("the claim is not allocated", lambda: not story.is_allocated())
    story.wait_figures({queue: 0})
    story.wait_owner("")
    assert entries(story) == []


def test_eight_pods_of_a_group_are_charged_for_their_claim_once(story: Story) -> None:
    vision = story.queue("vision", limit=8)
    story.devices(8)
    story.claim(count=8)
    a_group(story, "train", CLAIM, least=8)

    pods = members(story, "train", vision, numbered("train", 8))

    story.wait_bound(*pods)
    assert entries(story) == [("podgroups", "train")]
    story.wait_figures({vision: 8})
    assert story.owner() == vision
    assert story.status(vision)["claims"]["owned"] == 1
    for pod in pods[1:]:
        story.delete("pod", pod)
    assert (story.figure(vision), story.owner()) == (8, vision)

    # Kubernetes keeps the entry for as long as there is the PodGroup.
    story.delete("pod", pods[0])
    wait_released(story, vision)
    note = story.wait_told(CLAIM, "LeftOverCleared")
    assert f"No pod of PodGroup {story.namespace}/train uses ResourceClaim" in note
