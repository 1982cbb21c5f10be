"""What refused bindings and dead controllers leave on claims is cleared after a while."""

from __future__ import annotations

from tests.e2e.sharing.objects import CHARGES, QUEUE
from tests.e2e.sharing.stories import CLAIM, NODE, Story

HERE = {"kubernetes.io/hostname": NODE}


def test_the_allocation_of_a_refused_binding_is_cleared_and_another_has_the_device(
    hasty: Story,
) -> None:
    story = hasty
    vision, robots = story.queue("vision", limit=1), story.queue("robots")
    story.devices(1)
    story.claim()
    story.claim("others")
    with story.holding("bind", "first"):
        # On one node only: elsewhere kube-scheduler would clear the allocation itself.
        story.pod("first", vision, nodeSelector=HERE)
        story.until("it is about to be bound", lambda: story.is_held("bind", "first"))
        story.change_queue(vision, {"resources": [{"deviceClass": story.name, "limit": 0}]})

    story.wait_refused("first", "OverLimit")
    story.pod("other", robots, "others")
    story.wait_bound("other")
    assert (story.is_allocated(), story.owner()) == (False, "")
    assert "its allocation was cleared" in story.wait_told(CLAIM, "LeftOverCleared")
    story.wait_figures({vision: 0, robots: 1})


def test_pods_that_ended_while_no_controller_ran_are_taken_out_and_the_owner_ends(
    hasty: Story,
) -> None:
    story = hasty
    vision = story.queue("vision")
    story.devices(1)
    story.claim()
    for pod in ("first", "second"):
        story.pod(pod, vision)
    story.wait_bound("first", "second")
    controllers = story.cluster.part("kube-controller-manager")
    controllers.stop()
    try:
        story.patch("pod", "first", {"status": {"phase": "Succeeded"}}, "/status")
        story.until("one is left", lambda: story.consumers() == ["second"])
        assert (story.is_allocated(), story.owner()) == (True, vision)

        story.patch("pod", "second", {"status": {"phase": "Failed"}}, "/status")

        story.until("it is deallocated", lambda: not story.is_allocated())
        story.wait_owner("")
        story.wait_figures({vision: 0})
    finally:
        controllers.start()


def test_an_owner_written_by_a_plugin_that_was_killed_before_the_binding_ends(
    hasty: Story,
) -> None:
    story = hasty
    vision = story.queue("vision")
    story.devices(1)
    story.claim()
    story.allocate(CLAIM, NODE)
    story.as_binder_mark_owner(CLAIM, vision, "00000000-0000-0000-0000-000000000001")

    story.until("the allocation is cleared", lambda: not story.is_allocated())
    story.wait_owner("")
    assert story.owner_pod() == ""


def test_a_claim_whose_queue_is_taken_by_force_is_told(story: Story) -> None:
    """A Queue that is charged stays until its charges end, unless somebody cuts that short."""
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim(labels={QUEUE: vision})
    story.pod("foreign", robots)
    story.wait_bound("foreign")

    story.api.delete(story.path("queue", vision))
    assert story.get("queue", vision)["metadata"]["finalizers"] == [CHARGES]
    story.patch("queue", vision, {"metadata": {"finalizers": None}})

    told = story.wait_told(CLAIM, "QueueLost")
    assert f'belongs to queue "{vision}", which does not exist' in told
    assert story.bound() == {"foreign"}
