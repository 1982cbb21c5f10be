"""Brokers on a cluster with DRA: Akri's scenarios by name, and what goes beyond them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.driver import broker_plays, brokers
from tests.e2e.driver.brokers import NODES, BrokerStory
from tests.e2e.driver.installation import DEBUG_ECHO_FILE
from tests.e2e.driver.stories import Story


@pytest.fixture
def devices(story: Story) -> Iterator[brokers.Devices]:
    """Takes the devices of all nodes away; no node is left without them."""
    files = [story.cluster.node(node).path(DEBUG_ECHO_FILE) for node in NODES]
    found = brokers.Devices(files)
    yield found
    found.come()


def test_all_scheduled(broker_story: BrokerStory) -> None:
    broker_plays.play_all_scheduled(broker_story)


def test_every_broker_has_a_claim_of_its_device(broker_story: BrokerStory) -> None:
    broker_story.configure()
    broker_story.wait_counts(2, 4, 2, 1)
    for pod in broker_story.running():
        (entry,) = pod["status"]["resourceClaimStatuses"]
        claim = broker_story.cluster.get(
            "resourceclaim", entry["resourceClaimName"], namespace=broker_story.namespace
        )
        assert claim is not None
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert result["device"] == pod["metadata"]["labels"]["akri.sh/instance"]


def test_device_offline(broker_story: BrokerStory, devices: brokers.Devices) -> None:
    broker_plays.play_device_offline(broker_story, go=devices.go, come=devices.come)


def test_cleanup(broker_story: BrokerStory) -> None:
    broker_plays.play_cleanup(broker_story)


def test_broker_recreated_if_deleted(broker_story: BrokerStory) -> None:
    broker_plays.play_recreated_if_deleted(broker_story)


def test_brokers_follow_what_their_configuration_says(broker_story: BrokerStory) -> None:
    broker_plays.play_changes(broker_story)


def test_a_job_runs_once_for_each_device(broker_story: BrokerStory) -> None:
    broker_plays.play_jobs(broker_story)


def test_the_account_of_the_namespace_decides(broker_story: BrokerStory) -> None:
    broker_plays.play_not_allowed(broker_story)


def test_a_broker_that_fails_is_made_again_later_each_time(broker_story: BrokerStory) -> None:
    broker_plays.play_failing_brokers(broker_story)


def test_a_deployment_waits_for_the_second_camera(broker_story: BrokerStory) -> None:
    broker_plays.play_deployment(broker_story)


def test_dev_null_config(broker_story: BrokerStory) -> None:
    broker_plays.play_dev_null_config(broker_story)
