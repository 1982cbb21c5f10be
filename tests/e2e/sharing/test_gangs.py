"""PodGroups on the real cluster: all of a group run, or none; and who goes first beyond quotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.e2e.sharing import objects
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import OTHER_NODE, Story
from tests.e2e.sharing.test_waiting import GATE, a_waiting_pod, is_gated, wait_told
from tests.e2e.test_policies import POD_GROUP_CRD

DEFINITION = "crd/podgroups.scheduling.run.ai"


@pytest.fixture(scope="module", autouse=True)
def groups_served(plugin: Plugin) -> Iterator[None]:
    """A cluster that has KAI's PodGroups."""
    plugin.cluster.apply(POD_GROUP_CRD)
    plugin.cluster.kubectl("wait", DEFINITION, "--for=condition=Established", "--timeout=30s")
    with plugin.started_with():
        yield
        plugin.cluster.kubectl("delete", DEFINITION)


def a_group(story: Story, name: str, queue: str, least: int) -> str:
    """A PodGroup that says its pods' queue: until it is known, none of them goes."""
    path = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{story.namespace}/podgroups"
    body = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"queue": queue, "minMember": least},
    }
    story.api.create(path, body)
    return f"{path}/{name}"


def members(
    story: Story, group: str, numbers: Iterable[int], *, gated: bool = True, **spec: Any
) -> list[str]:
    """Pods of a group, each with a claim of its own; `spec` is more of theirs."""
    names = [f"{group}-{number}" for number in numbers]
    for name in names:
        story.claim(name)
        body = objects.pod(name, (name,), **spec)
        if gated:
            body["spec"]["schedulingGates"] = [GATE]
        body["metadata"]["annotations"] = {"pod-group-name": group}
        story.create("pod", body)
    return names


def bound(story: Story, names: Iterable[str]) -> list[str]:
    return [name for name in names if story.get("pod", name)["spec"].get("nodeName")]


def test_of_two_groups_one_runs_and_then_the_other(story: Story) -> None:
    """With a limit of 3 each would have some, pod by pod, and none could begin."""
    vision = story.queue("vision", limit=3)
    story.devices(9)
    for group in ("left", "right"):
        a_group(story, group, vision, 3)
    pairs = [members(story, group, [number]) for number in range(3) for group in ("left", "right")]
    everybody = [name for pair in pairs for name in pair]

    def one_of_them() -> str:
        running = bound(story, everybody)
        return running[0].partition("-")[0] if len(running) == 3 else ""

    first = story.until("three of them run", one_of_them)
    second = {"left": "right", "right": "left"}[first]
    assert {name.partition("-")[0] for name in bound(story, everybody)} == {first}
    sentence = wait_told(story, f"{second}-0", "OverLimit: ")
    assert "is admitted as a whole, 3 pods together: " in sentence
    assert all(is_gated(story, f"{second}-{number}") for number in range(3))

    for number in range(2):
        story.delete("pod", f"{first}-{number}")
        story.delete("claim", f"{first}-{number}")
    story.wait_figures({vision: 1})
    assert all(is_gated(story, f"{second}-{number}") for number in range(3))
    story.delete("pod", f"{first}-2")
    story.delete("claim", f"{first}-2")

    story.wait_bound(*(f"{second}-{number}" for number in range(3)))
    story.wait_figures({vision: 3})


def test_a_group_gets_its_quota_back_as_one_and_of_another_all_go(story: Story) -> None:
    """One pod of each would do for nobody: robots' two need each other, and so do ours."""
    story.priority_class(50)
    root = story.queue("root", limit=3, quota=3)
    mine = story.queue("mine", parent=root, quota=2)
    robots = story.queue("robots", parent=root, quota=0)
    story.devices(9)
    a_group(story, "theirs", robots, 2)
    theirs = members(story, "theirs", range(2))
    story.wait_bound(*theirs)
    story.claim("other")
    story.pod("other", robots, "other", priorityClassName=story.name)
    story.wait_bound("other")

    a_group(story, "ours", mine, 2)
    ours = members(story, "ours", range(2))

    story.wait_bound(*ours)
    assert story.bound() == {*ours, "other"}
    story.wait_figures({mine: 2, robots: 1})
    why = story.wait_told("theirs-0", "Reclaimed")
    assert why == story.wait_told("theirs-1", "Reclaimed")
    assert f'PodGroup {story.namespace}/ours (2 pods) of queue "{mine}"' in why
    assert f"with all of PodGroup {story.namespace}/theirs" in why


@pytest.mark.usefixtures("disk")
def test_containers_of_a_group_end_as_one_for_another_group_that_runs_as_one(story: Story) -> None:
    """A device of each of two nodes, and nothing else."""
    root = story.queue("root", limit=2, quota=2)
    mine = story.queue("mine", parent=root, quota=2)
    robots = story.queue("robots", parent=root, quota=0)
    a_group(story, "theirs", robots, 2)
    theirs = members(story, "theirs", range(2), terminationGracePeriodSeconds=1)
    story.wait_running(*theirs)

    a_group(story, "ours", mine, 2)
    ours = members(story, "ours", range(2), terminationGracePeriodSeconds=1)

    story.wait_running(*ours)
    story.until("the others are gone", lambda: story.bound() == {*ours})
    assert sorted(story.evictions()) == theirs
    story.wait_figures({mine: 2, robots: 0})


def test_too_few_wait_and_a_group_that_shrinks_lets_them_go(story: Story) -> None:
    vision = story.queue("vision", limit=9)
    story.devices(9)
    path = a_group(story, "train", vision, 4)
    waiting = members(story, "train", range(2))

    # It is told once, perhaps before the second comes.
    sentence = wait_told(story, "train-0", "PodGroupIncomplete: ")
    assert "is admitted as a whole, 4 pods together, and " in sentence
    story.api.patch(path, {"spec": {"minMember": 2}})

    story.wait_bound(*waiting)


def test_a_group_waits_at_its_gate_while_there_are_too_few_devices_for_all(story: Story) -> None:
    vision = story.queue("vision", limit=9)
    story.devices(2)
    a_group(story, "train", vision, 3)

    waiting = members(story, "train", range(3))

    sentence = wait_told(story, "train-0", "NoDeviceFree: ")
    assert "3 of its pods request 3 of " in sentence
    assert story.bound() == set()
    story.devices(1, node=OTHER_NODE)
    story.wait_bound(*waiting)


def test_without_a_gate_no_part_of_a_group_is_passed(story: Story) -> None:
    vision = story.queue("vision", limit=2)
    story.devices(9)
    a_group(story, "train", vision, 3)
    waiting = members(story, "train", range(3), gated=False)
    story.wait_condition("train-0", "is admitted as a whole, 3 pods together: ")
    assert bound(story, waiting) == []

    story.change_queue(vision, {"resources": [{"deviceClass": story.name, "limit": 3}]})

    story.wait_bound(*waiting)


def test_beyond_quotas_weights_divide_and_priority_goes_before_them(story: Story) -> None:
    root = story.queue("root", limit=0)
    queues = {name: story.queue(name, parent=root) for name in ("light", "heavy", "first")}
    story.devices(9)

    def weigh(name: str, weight: int, priority: int, limit: int) -> None:
        share = {"deviceClass": story.name, "limit": limit, "overQuotaWeight": weight}
        story.change_queue(queues[name], {"priority": priority, "resources": [share]})

    weigh("light", 1, 100, -1)
    weigh("heavy", 3, 100, -1)
    weigh("first", 0, 200, 4)
    for number in range(6):
        for name in ("light", "heavy"):
            a_waiting_pod(story, f"{name}-{number}", queues[name])
    a_waiting_pod(story, "never", queues["first"])
    wait_told(story, "heavy-5", "OverLimit: ")
    sentence = wait_told(story, "never", "OverLimit: ")
    assert "its quota of 0, beyond which it never goes (overQuotaWeight: 0)" in sentence

    story.change_queue(root, {"resources": [{"deviceClass": story.name, "limit": 8}]})

    story.wait_figures({root: 8, queues["heavy"]: 6, queues["light"]: 2})
    assert is_gated(story, "never")
    weigh("first", 1, 200, 4)
    for number in range(2):
        a_waiting_pod(story, f"first-{number}", queues["first"])
        wait_told(story, f"first-{number}", "OverLimit: ")
    story.change_queue(root, {"resources": [{"deviceClass": story.name, "limit": 9}]})
    story.wait_bound("never")
