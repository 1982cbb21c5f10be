"""Claims that kube-scheduler reserves for PodGroups, once for all of their pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from local_cluster.namespaces import missing_is_fine
from tests.e2e.sharing import objects
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import CLAIM, NODE, OTHER_NODE, Story

GATES = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
SERVED = {
    "1.36": ("v1alpha2", {**GATES, "GangScheduling": True, "WorkloadAwarePreemption": True}),
    "1.37": ("v1beta1", GATES),
}
"""The version of `scheduling.k8s.io` that serves the resource `podgroups`, and its gates."""

MANY = 300
"""More pods than a claim's status has room for."""

AT_ONCE = 50

ON_FAKE = {"moorage.test/node": "fake"}


@pytest.fixture(scope="module", autouse=True)
def hasty_plugin(plugin: Plugin) -> Iterator[Plugin]:
    """A cluster with PodGroups of Kubernetes' own API, for which claims may be reserved.

    Its plugin clears what has been left over for eight seconds: kube-scheduler tries a group every
    three, and a claim is left over while no member is tried.
    """
    found = SERVED.get(plugin.cluster.settings.kubernetes)
    if found is None:
        pytest.skip("this Kubernetes reserves no claims for PodGroups")
    version, gates = found
    runtime = {f"scheduling.k8s.io/{version}": "true"}
    with (
        plugin.cluster.reconfigured(feature_gates=gates, runtime_config=runtime),
        plugin.started_with("--leftover-grace", "8") as hasty,
    ):
        yield hasty
    # PodGroups are not served any more, and a process that follows them ends.
    plugin.restart()


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
        with missing_is_fine():
            story.api.delete(f"{story.path('pod', pod['metadata']['name'])}?gracePeriodSeconds=0")
    story.api.delete(groups_path(story))


def a_group(
    story: Story, name: str, *claims: str, least: int | None = None, priority_class: str = ""
) -> str:
    """A PodGroup that lists claims, and the UID of it."""
    listed = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    policy: dict[str, Any] = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    spec = {"schedulingPolicy": policy, "resourceClaims": listed}
    if priority_class:
        spec["priorityClassName"] = priority_class
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


def test_more_pods_than_a_status_has_room_for_share_a_claim_and_its_device_is_free_after_them(
    story: Story,
) -> None:
    """Bound to nodes without kubelets, of which none has room for all."""
    vision = story.queue("vision", limit=1)
    everywhere(story)
    story.claim()
    a_group(story, "train", CLAIM)

    pods = numbered("train", MANY)

    # kube-scheduler binds all pods of a cycle at once.
    for first in range(0, MANY, AT_ONCE):
        members(story, "train", vision, pods[first : first + AT_ONCE], nodeSelector=ON_FAKE)
        story.until("they are bound", partial(has_bound, story, first + AT_ONCE), seconds=120)

    assert entries(story) == [("podgroups", "train")]
    story.wait_figures({vision: 1})
    for pod in pods:
        story.api.delete(f"{story.path('pod', pod)}?gracePeriodSeconds=0")
    wait_released(story, vision)
    story.pod("next", vision)
    story.wait_bound("next")
    story.wait_figures({vision: 1})


def has_bound(story: Story, count: int) -> bool:
    return len(story.bound()) == count


def everywhere(story: Story) -> None:
    """One device that every node can use."""
    story.create("class", objects.device_class(story.name, story.driver))
    body = objects.resource_slice(story.driver, "everywhere", 1)
    del body["spec"]["nodeName"]
    body["spec"]["allNodes"] = True
    story.create("slice", body)


def test_killed_between_the_reservation_and_the_bindings_the_group_is_bound_and_charged_once(
    story: Story, hasty_plugin: Plugin
) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(1)
    story.claim()
    a_group(story, "train", CLAIM)
    with story.holding("bind", "train-0"), story.holding("bind", "train-1"):
        pods = members(story, "train", vision, numbered("train", 2))
        story.until("a member is at Bind", lambda: any(story.is_held("bind", p) for p in pods))
        assert entries(story) == [("podgroups", "train")]
        assert story.owner() == ""
        hasty_plugin.kill()
        story.cluster.part("kube-scheduler-moorage").kill()

    story.cluster.part("kube-scheduler-moorage").start()
    hasty_plugin.wait_ready()

    story.wait_bound(*pods)
    story.wait_figures({vision: 1})
    assert story.owner() == vision
    assert story.owner_pod() in {story.uid("pod", pod) for pod in pods}


def test_an_owner_written_before_the_plugin_was_killed_stands_for_the_group(
    story: Story, hasty_plugin: Plugin
) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(1)
    story.claim()
    a_group(story, "train", CLAIM)
    with story.bindings_stopped("true") as gate:
        pods = members(story, "train", vision, numbered("train", 2))
        story.until("a binding is stopped", lambda: gate.stopped)
        assert story.owner() == vision
        hasty_plugin.kill()
        hasty_plugin.wait_ready()
        gate.allow()

    story.wait_bound(*pods)
    story.wait_figures({vision: 1})
    assert story.owner_writes() == 1


def test_a_group_that_is_created_anew_under_the_same_name_gets_the_claim_anew(story: Story) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(1)
    story.claim()
    former = a_group(story, "train", CLAIM)
    story.wait_bound(*members(story, "train", vision, ["a", "b"]))

    # Kubernetes keeps the group while pods of it run.
    story.api.delete(groups_path(story, "train"))
    story.wait_figures({vision: 1})
    assert entries(story) == [("podgroups", "train")]
    story.delete("pod", "a")
    story.delete("pod", "b")
    story.until("the group is gone", lambda: former not in group_uids(story))
    again = a_group(story, "train", CLAIM)
    assert again != former
    pods = members(story, "train", vision, ["c", "d"])

    story.wait_bound(*pods)
    story.until("the claim is the new group's", lambda: reserved_uids(story) == [again])
    story.wait_figures({vision: 1})
    assert story.owner() == vision


def group_uids(story: Story) -> list[str]:
    return [each["metadata"]["uid"] for each in story.api.get(groups_path(story))["items"]]


def reserved_uids(story: Story) -> list[str]:
    status = story.get("claim", CLAIM).get("status", {})
    return [entry["uid"] for entry in status.get("reservedFor", ())]


def test_a_claim_of_a_group_is_taken_back_with_all_of_its_users(story: Story) -> None:
    root = story.queue("root", limit=2, quota=2)
    mine = story.queue("mine", parent=root, quota=2)
    robots = story.queue("robots", parent=root, quota=0)
    story.devices(2)
    story.claim(count=2)
    a_group(story, "theirs", CLAIM)
    theirs = members(story, "theirs", robots, numbered("theirs", 3))
    story.wait_bound(*theirs)
    story.wait_figures({robots: 2})

    story.claim("w", count=2)
    story.pod("w", mine, "w")

    story.wait_bound("w")
    assert story.bound() == {"w"}
    assert sorted(story.evictions()) == theirs
    assert not story.is_allocated()
    story.wait_figures({mine: 2, robots: 0})


def test_pods_share_a_claim_with_a_group_as_their_queues_share(story: Story) -> None:
    vision, robots = story.queue("vision", limit=1), story.queue("robots", limit=0)
    story.devices(1)
    story.claim()
    story.pod("owner", vision)
    story.wait_bound("owner")
    a_group(story, "train", CLAIM)

    story.wait_bound(*members(story, "train", robots, ["a", "b"]))

    assert sorted(entries(story)) == [("podgroups", "train"), ("pods", "owner")]
    story.wait_figures({vision: 1, robots: 0})
    story.wait_shared_out(vision)
    members(story, "train", vision, ["c"])
    sentence = story.wait_refused("c", "PodGroupQueueMismatch")
    assert f"is reserved for PodGroup {story.namespace}/train, and Pod" in sentence
    story.change_queue(vision, {"claimSharing": {"policy": "Deny"}})
    members(story, "train", robots, ["d"])
    story.wait_refused("d", "ClaimSharingDenied")


def test_other_claims_of_the_pods_of_a_group_stay_theirs(story: Story) -> None:
    vision = story.queue("vision", limit=3)
    story.devices(3)
    story.claim()
    a_group(story, "train", CLAIM)
    group = {"podGroupName": "train"}
    for name in ("a", "b"):
        story.claim(name)
        story.pod(name, vision, CLAIM, name, schedulingGroup=group)

    story.wait_bound("a", "b")

    assert entries(story) == [("podgroups", "train")]
    assert (story.consumers("a"), story.consumers("b")) == (["a"], ["b"])
    story.wait_figures({vision: 3})


@pytest.mark.usefixtures("disk")
def test_containers_of_a_group_run_with_the_device_of_its_claim(story: Story) -> None:
    """The kubelet has the claim prepared once, and released after the last of them."""
    vision = story.queue("vision", limit=1)
    story.claim()
    a_group(story, "train", CLAIM)

    pods = members(story, "train", vision, ["a", "b"], terminationGracePeriodSeconds=1)

    story.wait_running(*pods)
    assert entries(story) == [("podgroups", "train")]
    story.wait_figures({vision: 1})
    for pod in pods:
        story.api.delete(story.path("pod", pod))
    story.until("the pods are gone", lambda: not story.all("pod"))
    wait_released(story, vision)


def test_a_pod_of_a_group_is_bound_though_another_does_not_fit(story: Story) -> None:
    """kube-scheduler tries no pod of a group while one has a gate."""
    vision = story.queue("vision", limit=1)
    story.devices(2)
    a_group(story, "train")
    names = numbered("train", 2)
    for name in names:
        story.claim(name)
        gated = {"schedulingGates": [{"name": "moorage.dev/quota"}]}
        story.pod(name, vision, name, schedulingGroup={"podGroupName": "train"}, **gated)

    story.until("one is bound", lambda: len(story.bound()) == 1)
    (bound,) = story.bound()
    (other,) = {*names} - {bound}
    story.wait_refused(other, "OverLimit")
    story.delete("pod", bound)

    story.wait_bound(other)


def test_no_pod_is_evicted_for_a_group_that_is_refused(story: Story) -> None:
    """kube-scheduler asks Filter, with the pods removed that could go for the group."""
    story.priority_class(50)
    refused, admitted = story.queue("refused", limit=0), story.queue("admitted", limit=2)
    for node in (NODE, OTHER_NODE):
        story.devices(2, node=node)
    most: dict[str, Any] = {"resources": {"requests": {"cpu": "31"}}, "nodeSelector": ON_FAKE}
    for name in ("idle-0", "idle-1"):
        story.plain_pod(name, **most)
    story.wait_bound("idle-0", "idle-1")

    for name, queue in (("refused", refused), ("admitted", admitted)):
        a_group(story, name, least=2, priority_class=story.name)
        for pod in numbered(name, 2):
            story.claim(pod)
            group = {"podGroupName": name}
            used = {"schedulingGroup": group, "priorityClassName": story.name}
            story.pod(pod, queue, pod, **used, **most)
        if name == "refused":
            story.until("it was tried", partial(is_unschedulable, story, name))
            assert story.bound() == {"idle-0", "idle-1"}

    story.wait_bound(*numbered("admitted", 2))
    assert story.bound() == {*numbered("admitted", 2)}


def is_unschedulable(story: Story, name: str) -> bool:
    status = story.api.get(groups_path(story, name)).get("status", {})
    return any(each["status"] == "False" for each in status.get("conditions", ()))
