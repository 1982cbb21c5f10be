"""Brokers with claims are pods like others: their queue is charged, and gives devices back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.driver import brokers
from tests.e2e.driver.brokers import BrokerStory
from tests.e2e.driver.installation import Drivers
from tests.e2e.sharing.objects import QUEUE, SCHEDULER
from tests.e2e.sharing.stories import Story


@pytest.fixture
def broker_story(story: Story, drivers: Drivers) -> Iterator[BrokerStory]:
    assert drivers.nodes
    with brokers.told(story.cluster, story.namespace, story.name, schedulerName=SCHEDULER) as found:
        yield found


def test_a_broker_gives_its_device_to_the_guarantee_of_another_queue_and_waits(
    story: Story, broker_story: BrokerStory
) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    broker_story.configure(labels={QUEUE: robots}, capacity=1)
    broker_story.wait_condition("True", "2 brokers run.")
    story.wait_figures({robots: 2})

    story.claim("w")
    story.pod("w", mine, "w")

    story.wait_running("w")
    broker_story.wait_condition("False", "1 of 2 brokers run. 1 broker waits: ")
    story.wait_figures({mine: 1, robots: 1})
    story.delete("pod", "w")
    broker_story.wait_condition("True", "2 brokers run.")
    story.wait_figures({mine: 0, robots: 2})


def test_a_foreign_pod_joins_no_broker_whose_queue_does_not_share(
    story: Story, broker_story: BrokerStory
) -> None:
    robots = story.queue("robots", claimSharing={"policy": "Deny"})
    broker_story.configure(labels={QUEUE: robots}, capacity=1)
    broker_story.wait_condition("True", "2 brokers run.")
    (entry,) = broker_story.running()[0]["status"]["resourceClaimStatuses"]

    story.pod("foreign", story.queue("others"), entry["resourceClaimName"])

    story.wait_refused("foreign", "ClaimSharingDenied")
    story.delete("pod", "foreign")
    story.wait_figures({robots: 2})
