"""A running cluster that moves from the device plugin to DRA and back, while pods keep a device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_cluster.api import Cluster
from tests.e2e.driver import installation
from tests.e2e.legacy.drivers import start_drivers
from tests.e2e.legacy.moves import ANY_SHARED, DEVICE_PLUGIN, DRA, LOCAL, SHARED, MovingStory
from tests.e2e.legacy.slot_stories import ANY, A, B, told_as


@pytest.fixture
def story(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[MovingStory]:
    installation.install_objects(cluster)
    drivers = start_drivers(cluster, path=DEVICE_PLUGIN)
    for one in told_as(MovingStory, cluster, drivers, request.node.name):
        yield one
        drivers = one.drivers
    drivers.stop()


def test_no_slot_is_granted_twice_on_the_way_to_dra_and_back(story: MovingStory) -> None:
    story.find_devices(local=3, shared=2)
    for name in ("first", "second"):
        story.pod(name, {LOCAL: 1}, A)
    story.run("of-b", {ANY_SHARED: 1}, B)
    story.wait_running("first", "second")

    story.take(DRA)
    story.wait_left(LOCAL, "1")
    story.wait_left(SHARED, "1")
    story.pod("third", {ANY: 1}, A)
    story.run("of-a", {ANY_SHARED: 1}, A)
    story.wait_running("third")
    story.pods_are_refused({"waits": ANY, "waits-too": ANY_SHARED})
    assert (story.claimed(), len(story.usage()), story.failed()) == (2, 3, [])

    story.end_together("first", "of-b")
    story.wait_left(LOCAL, "2")
    story.wait_running("waits", "waits-too")
    assert (story.claimed(), len(story.usage())) == (4, 1)

    story.take(DEVICE_PLUGIN)
    story.pods_are_refused({"later": LOCAL, "later-too": SHARED})
    story.end_together("third", "of-a")
    assert all(map(story.refusal, ("later", "later-too")))
    assert story.is_running("second")

    story.end_together("waits", "waits-too")
    story.wait_running("later", "later-too")
    assert story.published(LOCAL) + story.published(SHARED) == []
    assert (len(story.usage()), story.failed()) == (3, [])
