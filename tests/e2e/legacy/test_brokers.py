"""Brokers without DRA: Akri's scenarios by name, on the device plugin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.driver import broker_plays, brokers
from tests.e2e.driver.brokers import BrokerStory
from tests.e2e.legacy.drivers import availability
from tests.e2e.legacy.lost_nodes import lost, shut_down
from tests.e2e.legacy.slot_stories import A, SlotStory


@pytest.fixture
def broker_story(slots: SlotStory) -> Iterator[BrokerStory]:
    with brokers.told(slots.cluster, slots.namespace, slots.name) as found:
        yield found


@pytest.fixture
def devices(slots: SlotStory) -> Iterator[brokers.Devices]:
    found = brokers.Devices([availability(slots.cluster)])
    yield found
    availability(slots.cluster).unlink(missing_ok=True)


def test_all_scheduled(broker_story: BrokerStory) -> None:
    broker_plays.play_all_scheduled(broker_story)


def test_every_broker_has_a_slot_of_its_device(broker_story: BrokerStory) -> None:
    broker_story.configure()
    broker_story.wait_counts(2, 4, 2, 1)
    for pod in broker_story.running():
        instance = pod["metadata"]["labels"]["akri.sh/instance"]
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["limits"] == {f"akri.sh/{instance}": "1"}


def test_device_offline(broker_story: BrokerStory, devices: brokers.Devices) -> None:
    broker_plays.play_device_offline(broker_story, go=devices.go, come=devices.come)


def test_cleanup(broker_story: BrokerStory) -> None:
    broker_plays.play_cleanup(broker_story)


def test_broker_recreated_if_deleted(broker_story: BrokerStory) -> None:
    broker_plays.play_recreated_if_deleted(broker_story)


def test_a_job_runs_once_for_each_device(broker_story: BrokerStory) -> None:
    broker_plays.play_jobs(broker_story)


def test_a_deployment_waits_for_the_second_camera(broker_story: BrokerStory) -> None:
    broker_plays.play_deployment(broker_story)


def test_dev_null_config(broker_story: BrokerStory) -> None:
    broker_plays.play_dev_null_config(broker_story)


def test_a_node_that_boots_again_has_its_brokers_again_and_no_stream_of_pods(
    slots: SlotStory, broker_story: BrokerStory
) -> None:
    """Akri's issue 801: nobody could claim the slots of the node again, and pods failed at once."""
    broker_story.configure()
    broker_story.wait_counts(2, 4, 2, 1)
    before = {pod["metadata"]["uid"] for pod in broker_story.pods()}
    with lost(slots.cluster, A), shut_down(slots.cluster, A, effect="NoExecute"):
        broker_story.wait_condition("False", "2 of 4 brokers run. 2 brokers wait: ")
    seen = set(before)

    def run_again() -> bool:
        seen.update(pod["metadata"]["uid"] for pod in broker_story.pods())
        return broker_story.counts() == (2, 4, 2, 1) and not _waits(broker_story)

    broker_story.until("the node has its brokers again", run_again)
    assert len({pod["metadata"]["uid"] for pod in broker_story.running()} & before) == 2
    # The kubelet may be back before the driver has registered: one attempt more for each broker.
    assert len(seen - before) <= 4, "brokers were made again and again"


def _waits(story: BrokerStory) -> bool:
    return story.condition().get("status") != "True"
