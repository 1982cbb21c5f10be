"""Quota is guaranteed to whole lines of pods, wherever they may go, and for nobody in vain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_cluster.api import Cluster
from tests.e2e.sharing import objects
from tests.e2e.sharing.stories import NODE, OTHER_NODE, Story
from tests.e2e.sharing.test_reclaim import GATE, condition, queues, unmet, use

LONG = 300
"""Seconds of grace that are over after a story's end: its pods are asked to go, and stay."""


@pytest.fixture(scope="module")
def ten_nodes(shared_cluster: Cluster) -> Iterator[None]:
    with shared_cluster.reconfigured(fake_nodes=10):
        yield


def test_ten_that_wait_are_served_within_the_grace_of_one(story: Story) -> None:
    mine, robots = queues(story, limit=10, mine=10)
    users = [f"r{number}" for number in range(10)]
    story.devices(10)
    for user in users:
        use(story, user, robots, terminationGracePeriodSeconds=LONG)

    line = [f"w{number}" for number in range(10)]
    for name in line:
        story.claim(name)
        story.pod(name, mine, name, schedulingGates=[GATE])

    story.until("all are asked to go", lambda: all(story.told(u, "Reclaimed") for u in users))
    assert story.bound() == {*users}
    for user in users:
        story.delete("pod", user)
    story.wait_bound(*line)


def test_who_stands_behind_one_that_cannot_be_served_is_served(story: Story) -> None:
    """The head of the line wants a node that has no device."""
    mine, robots = queues(story, limit=2, mine=2)
    story.devices(2)
    use(story, "r1", robots)
    use(story, "r2", robots)

    story.claim("head")
    story.pod("head", mine, "head", **objects.on("nowhere"))
    story.claim("w")
    story.pod("w", mine, "w")

    story.wait_bound("w")
    assert len(story.bound() & {"r1", "r2"}) == 1


@pytest.mark.usefixtures("ten_nodes")
def test_the_ninth_node_serves_where_eight_others_would_not_do(story: Story) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    nodes = [f"fake-{number:04d}" for number in range(10)]
    for node in nodes:
        story.devices(1, node=node)
        use(story, f"on-{node}", robots, **objects.on(node))

    story.claim("w")
    story.pod("w", mine, "w", **objects.on(nodes[8]))

    story.wait_bound("w")
    assert story.bound() == {"w", *(f"on-{node}" for node in nodes if node != nodes[8])}


def test_a_neighbour_that_repels_others_keeps_nobody_from_its_quota(story: Story) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    story.devices(1)
    use(story, "r1", robots)
    affinity = objects.repelling("shy", "yes")
    story.plain_pod("shy", labels={"shy": "yes"}, affinity=affinity, **objects.on(NODE))
    story.wait_bound("shy")

    story.claim("w")
    story.pod("w", mine, "w")

    story.wait_bound("w")
    assert story.bound() == {"shy", "w"}


def test_a_pod_with_a_volume_an_affinity_and_a_spread_gets_a_device_back(story: Story) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    story.devices(1)
    use(story, "r1", robots)
    story.plain_pod("friend", labels={"app": "friend"}, **objects.on(NODE))
    story.wait_bound("friend")
    story.create("volumeclaim", objects.volume_claim("data", story.name))
    wanted = {"namespace": story.namespace, "name": "data"}
    story.create("volume", objects.volume(story.name, wanted))

    story.claim("w")
    story.pod(
        "w",
        mine,
        "w",
        affinity=objects.beside("app", "friend"),
        topologySpreadConstraints=objects.spread(objects.HOST),
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    )

    story.wait_bound("w")
    assert story.bound() == {"friend", "w"}


def test_what_is_taken_in_vain_is_taken_once_and_the_queue_says_so(story: Story) -> None:
    """No node has the label by which the pod wants to be spread: that is not looked at before."""
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    others = story.queue("others", quota=0)
    story.devices(1)
    use(story, "r1", robots)

    story.claim("w")
    story.pod("w", mine, "w", topologySpreadConstraints=objects.spread("nowhere"))

    story.until("it was tried", lambda: story.told("r1", "Reclaimed"))
    story.claim("r2")
    story.pod("r2", others, "r2")
    story.wait_refused("r2", "DeviceHeld")
    story.until("in vain", lambda: condition(story, "w")[0] == "False", seconds=90)
    assert NODE in story.wait_told("w", "ReclaimMissed")
    story.wait_bound("r2")
    story.until("the queue says so", lambda: "not bound" in unmet(story, mine))
    assert not story.told("r2", "Reclaimed")


def test_while_a_device_is_held_others_get_what_is_free(story: Story) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    others = story.queue("others", quota=0)
    story.devices(1)
    story.devices(1, node=OTHER_NODE)
    use(story, "r1", robots, terminationGracePeriodSeconds=LONG, **objects.on(NODE))
    story.claim("w")
    story.pod("w", mine, "w", **objects.on(NODE))
    story.wait_told("r1", "Reclaimed")

    story.claim("next")
    story.pod("next", others, "next")

    story.wait_bound("next")
    assert story.node_of("next") == OTHER_NODE
    story.delete("pod", "r1")
    story.wait_bound("w")


def test_a_queue_that_took_all_in_one_claim_gives_it_back(story: Story) -> None:
    mine, robots = queues(story, limit=2, robots=1)
    story.devices(2)
    use(story, "large", robots, count=2)

    story.claim("w")
    story.pod("w", mine, "w", schedulingGates=[GATE])

    story.wait_bound("w")
    assert story.bound() == {"w"}


def test_a_pod_that_only_waits_keeps_no_claim_from_being_given_back(story: Story) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    story.devices(1)
    use(story, "r1", robots)
    story.pod("joiner", robots, "r1", **objects.on("nowhere"))

    story.claim("w")
    story.pod("w", mine, "w")

    story.wait_bound("w")
    assert story.bound() == {"w"}


def test_a_claim_that_only_foreign_pods_use_goes_for_a_pod_of_its_owner(story: Story) -> None:
    """Its owner's pods have ended: another queue's keeps the device, and the next one waits."""
    mine, others = story.queue("mine", quota=1, limit=1), story.queue("others", quota=0)
    story.devices(1)
    use(story, "first", mine, ("guest", others))
    story.delete("pod", "first")

    story.claim("w")
    story.pod("w", mine, "w", schedulingGates=[GATE])

    story.wait_bound("w")
    assert story.bound() == {"w"}
    assert "first" in story.wait_told("guest", "Reclaimed")


def test_who_was_evicted_borrows_again_after_a_minute_only(story: Story) -> None:
    """Else whoever makes it anew would borrow what the next one in line is to give back."""
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    story.devices(2)
    use(story, "r1", robots)
    use(story, "r2", robots)
    story.claim("w")
    story.pod("w", mine, "w")
    story.wait_bound("w")
    (left,) = {"r1", "r2"} & story.bound()
    story.delete("pod", left)

    story.claim("again")
    story.pod("again", robots, "again")

    story.wait_refused("again", "BorrowingBackoff")
    story.until("a minute is over", lambda: "again" in story.bound(), seconds=90)
