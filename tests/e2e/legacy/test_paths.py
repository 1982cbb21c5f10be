"""A running cluster that moves from the device plugin to DRA and back, while pods keep a device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_cluster.api import Cluster
from tests.e2e.driver import installation
from tests.e2e.legacy.drivers import start_drivers
from tests.e2e.legacy.moves import DEVICE_PLUGIN, DRA, LOCAL, MovingStory
from tests.e2e.legacy.slot_stories import ANY, A, told_as


@pytest.fixture
def story(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[MovingStory]:
    installation.install_objects(cluster)
    drivers = start_drivers(cluster, "--path", DEVICE_PLUGIN)
    for one in told_as(MovingStory, cluster, drivers, request.node.name):
        yield one
        drivers = one.drivers
    drivers.stop()


def test_no_slot_is_granted_twice_on_the_way_to_dra_and_back(story: MovingStory) -> None:
    story.find_local(capacity=3)
    story.run("first", {LOCAL: 1}, A)
    story.run("second", {LOCAL: 1}, A)

    story.take(DRA)
    story.wait_left("1")
    story.run("third", {ANY: 1}, A)
    story.pod("waits", {ANY: 1}, A)
    story.until("the fourth use is refused", lambda: story.refusal("waits"))
    assert (story.claimed(), len(story.usage()), story.failed()) == (1, 2, [])

    story.end_unharmed("first")
    story.wait_left("2")
    story.wait_running("waits")
    assert (story.claimed(), len(story.usage())) == (2, 1)

    story.take(DEVICE_PLUGIN)
    story.wait_left()
    story.pod("later", {LOCAL: 1}, A)
    story.until("a use beside the claims is refused", lambda: story.refusal("later"))
    story.end_unharmed("third")
    assert story.refusal("later")
    assert story.is_running("second")

    story.end_unharmed("waits")
    story.wait_running("later")
    assert (story.published(), len(story.usage()), story.failed()) == ([], 2, [])
