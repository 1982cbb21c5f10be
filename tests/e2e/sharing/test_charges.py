"""What is charged, and to which queues, as the Queues' status shows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.sharing import objects
from tests.e2e.sharing.stories import NODE, Story

LARGEST = 2**63 - 1


def test_ancestors_count_what_their_descendants_add_and_remove(story: Story) -> None:
    root = story.queue("root")
    middle = story.queue("middle", parent=root)
    first, second = (story.queue(name, parent=middle) for name in ("first", "second"))
    tree = (root, middle, first, second)
    story.devices(2)
    figures = []
    for claim, queue in (("one", first), ("two", second)):
        story.claim(claim)
        story.pod(f"of-{claim}", queue, claim)
        story.pod(f"shares-{claim}", second, claim)
        figures.append({"one": (1, 1, 1, 0), "two": (2, 2, 1, 1)}[claim])
        story.wait_bound(f"of-{claim}", f"shares-{claim}")
        story.wait_figures(dict(zip(tree, figures[-1], strict=True)))

    for claim, left in (("one", (1, 1, 0, 1)), ("two", (0, 0, 0, 0))):
        story.delete("pod", f"of-{claim}")
        story.delete("pod", f"shares-{claim}")

        story.wait_figures(dict(zip(tree, left, strict=True)))


@pytest.mark.parametrize("where", ["queue", "parent"])
@pytest.mark.parametrize("preemptibility", ["preemptible", "non-preemptible"])
def test_five_sharers_of_one_device_fit_into_one(
    story: Story, where: str, preemptibility: str
) -> None:
    one: dict[str, Any] = {"quota": 1, "limit": 1}
    free: dict[str, Any] = {"quota": -1, "limit": -1}
    root = story.queue("root", **(one if where == "parent" else free))
    vision = story.queue("vision", parent=root, **(one if where == "queue" else free))
    story.devices(1)
    story.claim()
    pods = [f"sharer-{number}" for number in range(5)]

    for pod in pods:
        story.pod(pod, vision, preemptibility=preemptibility)

    story.wait_bound(*pods)
    story.wait_figures({root: 1, vision: 1})
    strict = int(preemptibility == "non-preemptible")
    story.wait_figures({root: strict, vision: strict}, "usageNonPreemptible")


def test_a_claim_of_several_devices_costs_as_many(story: Story) -> None:
    vision = story.queue("vision", limit=5)
    story.devices(6)
    story.claim("three", count=3)
    story.claim("two-more", count=2)
    story.claim("one-too-many")
    for name in ("three", "two-more"):
        story.pod(f"of-{name}", vision, name)
    story.wait_bound("of-three", "of-two-more")

    story.pod("beyond", vision, "one-too-many")

    story.wait_refused("beyond", "OverLimit")
    story.wait_figures({vision: 5})


def test_counts_as_large_as_numbers_go_are_no_reason_to_charge_wrong(story: Story) -> None:
    vision = story.queue("vision", limit=LARGEST, quota=LARGEST)
    story.devices(1)
    story.claim()
    for name in ("vast", "vaster"):
        story.claim(name, count=LARGEST)
        story.pod(f"wants-{name}", vision, name)

    story.pod("modest", vision)

    story.wait_bound("modest")
    story.wait_figures({vision: 1})
    story.wait_figures({vision: LARGEST}, "requested")
    assert story.bound() == {"modest"}


def test_a_class_counts_by_its_label_and_not_by_its_name(story: Story) -> None:
    mig = f"mig-{story.name}"
    vision = story.queue("vision", shares={mig: {"limit": 0}})
    story.devices(1)
    story.create("class", objects.device_class(mig, story.driver))
    story.claim(class_name=mig)

    story.pod("beyond", vision)

    story.wait_refused("beyond", "OverLimit")


def test_a_class_that_is_not_accounted_is_nobodys_business(story: Story) -> None:
    full = story.queue("full", limit=0, claimSharing={"policy": "Deny"})
    story.devices(1, accounted="false")
    story.claim()

    story.pod("of-none", "")
    story.pod("of-a-full-queue", full)
    story.pod("of-an-unknown-queue", "nobody-knows", preemptibility="non-preemptible")

    story.wait_bound("of-none", "of-a-full-queue", "of-an-unknown-queue")
    assert (story.owner(), story.owner_pod()) == ("", "")
    story.wait_figures({full: 0})


def test_a_class_without_a_label_is_accounted_once_a_queue_lists_it(story: Story) -> None:
    story.devices(1, accounted=None)
    story.claim()
    story.pod("early", "")
    story.wait_bound("early")
    assert story.owner() == ""

    vision = story.queue("vision", limit=1)
    story.pod("late", "")

    story.wait_refused("late", "NoQueue")
    story.wait_figures({vision: 0})


def test_a_class_whose_label_is_flipped_under_use_is_charged_from_then_on(story: Story) -> None:
    vision, robots = story.queue("vision", limit=1), story.queue("robots")
    story.devices(2)
    story.claim()
    story.claim("other")
    story.pod("first", vision)
    story.wait_bound("first")
    story.wait_figures({vision: 1})

    story.account("false")
    story.wait_figures({vision: 0})
    story.pod("foreign", robots, preemptibility="non-preemptible")
    story.wait_bound("foreign")
    story.account("true")

    story.wait_figures({vision: 1, robots: 0})
    assert story.owner() == vision
    story.pod("beyond", vision, "other")
    story.wait_refused("beyond", "OverLimit")


def test_the_implicit_name_of_an_extended_resource_is_charged_as_its_class(story: Story) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(3)
    limits = {"limits": {f"deviceclass.resource.kubernetes.io/{story.name}": "1"}}
    story.plain_pod("within", vision, resources=limits)
    story.wait_bound("within")
    story.wait_figures({vision: 1})

    story.plain_pod("beyond", vision, resources=limits)

    story.wait_refused("beyond", "OverLimit")
    story.delete("pod", "within")
    story.wait_bound("beyond")
    story.wait_figures({vision: 1})


def test_an_explicit_extended_resource_is_charged_as_the_class_that_names_it(
    story: Story,
) -> None:
    vision = story.queue("vision", limit=2)
    resource = f"example.com/{story.name}"
    story.devices(3, extendedResourceName=resource)
    story.plain_pod("within", vision, resources={"limits": {resource: "2"}})
    story.wait_bound("within")
    story.wait_figures({vision: 2})

    story.plain_pod("beyond", vision, resources={"limits": {resource: "1"}})

    story.wait_refused("beyond", "OverLimit")


def test_an_important_pod_over_its_limit_evicts_nobody_from_a_full_cluster(story: Story) -> None:
    vision = story.queue("vision", limit=0)
    story.devices(1)
    story.claim()
    story.priority_class(1_000)
    here: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": NODE}}
    for innocent, cpu in {"innocent-1": "15", "innocent-2": "15", "brief": "2"}.items():
        story.plain_pod(innocent, resources={"requests": {"cpu": cpu}}, **here)
    innocents = {"innocent-1", "innocent-2"}
    story.wait_bound(*innocents, "brief")
    important = {
        "resources": {"requests": {"cpu": "15"}},
        "priorityClassName": story.name,
        "preemptibility": "preemptible",
    }

    story.pod("important", vision, **important, **here)

    story.wait_condition("important", "no candidate node for preemption")
    assert innocents <= story.bound()
    # The same pod may evict once its queue may have it: kube-scheduler tries when a pod ends.
    story.change_queue(vision, {"resources": []})
    story.delete("pod", "brief")
    story.wait_bound("important")
    assert len(innocents & story.bound()) == 1


def test_a_queue_that_owns_a_claim_stays_until_it_is_released(story: Story) -> None:
    """The webhook would refuse it; a claim may be bound just after it was asked."""
    root = story.queue("root")
    vision, robots = story.queue("vision", parent=root), story.queue("robots", parent=root)
    story.devices(2)
    story.claim()
    story.claim("other")
    story.pod("owner", vision)
    story.wait_bound("owner")

    story.api.delete(story.path("queue", vision))
    story.until("it goes", lambda: "deletionTimestamp" in story.get("queue", vision)["metadata"])
    story.pod("new", vision, "other")
    story.pod("guest", robots)

    assert "is being deleted" in story.wait_refused("new", "QueueNotFound")
    story.wait_bound("guest")
    story.wait_figures({root: 1, vision: 1, robots: 0})
    story.delete("pod", "owner")
    story.delete("pod", "guest")
    story.until("the queue is gone", lambda: story.find("queue", vision) is None)
    story.wait_figures({root: 0})


def test_a_queue_that_is_charged_no_more_goes_at_once(story: Story) -> None:
    vision = story.queue("vision")
    story.devices(1)
    story.claim()
    story.pod("owner", vision)
    story.wait_bound("owner")
    story.delete("pod", "owner")
    story.wait_figures({vision: 0})

    story.api.delete(story.path("queue", vision))

    story.until("the queue is gone", lambda: story.find("queue", vision) is None)
