"""Claims that are used and that nobody owns: from another scheduler, or from before Moorage."""

from __future__ import annotations

from tests.e2e.sharing.stories import CLAIM, NODE, OTHER_NODE, Story

STOCK = "default-scheduler"


def test_a_running_cluster_is_taken_over_each_claim_charged_once_to_its_oldest_pods_queue(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", limit=1)
    story.devices(2)
    story.claim()
    story.claim("unshared")
    with story.plugin.down():
        story.pod("a-nobodys", "", schedulerName=STOCK)
        story.pod("b-old", robots, schedulerName=STOCK)
        story.pod("c-young", vision, schedulerName=STOCK)
        story.pod("alone", vision, "unshared", schedulerName=STOCK)
        story.wait_bound("a-nobodys", "b-old", "c-young", "alone")
        assert (story.owner(), story.owner("unshared")) == ("", "")

    story.wait_figures({robots: 1, vision: 1})
    assert (story.owner(), story.owner_pod()) == (robots, story.uid("pod", "b-old"))
    assert story.owner("unshared") == vision
    story.wait_shared_out(robots)
    assert story.wait_told(CLAIM, "OrphanAttributed") == (
        f"ResourceClaim {story.namespace}/{CLAIM} was in use and belonged to no queue. It belongs"
        f' to queue "{robots}" now, the queue of Pod {story.namespace}/b-old, the oldest of its'
        " pods that has one."
    )
    story.pod("joins", vision)
    story.wait_bound("joins")
    story.wait_figures({robots: 1, vision: 1})
    assert story.owner_writes() == 1


def test_a_claim_that_is_attributed_to_nobody_belongs_to_the_next_queue_that_binds_it(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    with story.plugin.started_with("--orphan-policy", "Unattributed"):
        story.pod("old", robots, schedulerName=STOCK)
        story.wait_bound("old")
        # What the plugin sees and charges afterwards it would have charged before.
        story.devices(1, node=OTHER_NODE)
        story.claim("later")
        story.pod("witness", vision, "later")
        story.wait_bound("witness")
        story.wait_figures({vision: 1, robots: 0})
        assert story.owner() == ""
        orphaned = {"owned": 0, "sharedOut": 0, "orphans": 1}
        story.until("robots has one", lambda: story.status(robots).get("claims") == orphaned)

        story.pod("next", vision)

        story.wait_bound("next")
        story.wait_figures({vision: 2, robots: 0})
        assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "next"))
        story.until("robots has no orphan", lambda: "orphans" not in story.status(robots)["claims"])


def test_a_claim_between_prebind_and_bind_is_no_orphan_whoever_forgot_the_decision(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.devices(1, node=OTHER_NODE)
    story.claim()
    story.claim("orphan")
    with story.holding("bind", "first"):
        story.pod("first", vision, nodeSelector={"kubernetes.io/hostname": NODE})
        story.until("it is about to be bound", lambda: story.is_held("bind", "first"))
        story.plugin.restart()

        story.pod("elsewhere", robots, "orphan", schedulerName=STOCK)

        story.wait_owner(robots, "orphan")
        assert (story.owner(), story.is_allocated(), story.consumers()) == ("", True, ["first"])
    story.wait_bound("first")
    story.wait_figures({vision: 1, robots: 1})
    assert story.told(CLAIM, "OrphanAttributed") == ""
