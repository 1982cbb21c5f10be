"""Brokers are pods like others: their queue is charged, and they wait for room in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.driver import brokers
from tests.e2e.driver.brokers import BrokerStory
from tests.e2e.driver.installation import Drivers
from tests.e2e.legacy.stories import LegacyStory
from tests.e2e.sharing.admission import MANAGED
from tests.e2e.sharing.objects import QUEUE


@pytest.fixture
def broker_story(story: LegacyStory, drivers: Drivers) -> Iterator[BrokerStory]:
    assert drivers.nodes
    with brokers.told(story.cluster, story.namespace, story.name) as found:
        yield found


def test_brokers_wait_for_room_in_the_queue_of_their_configuration(
    story: LegacyStory, broker_story: BrokerStory
) -> None:
    vision = story.queue("vision", limit=3)
    story.label_namespace({MANAGED: "true"})
    broker_story.configure(labels={QUEUE: vision})

    broker_story.wait_condition("False", "3 of 4 brokers run. 1 broker waits: ")
    assert f'queue "{vision}" uses 3' in broker_story.condition()["message"]
    story.wait_figures({vision: 3})
    assert {pod["metadata"]["labels"][QUEUE] for pod in broker_story.pods()} == {vision}

    resources = [{"deviceClass": story.name, "quota": -1, "limit": 4}]
    story.change_queue(vision, {"resources": resources})
    broker_story.wait_condition("True", "4 brokers run.")
    story.wait_figures({vision: 4})


def test_brokers_have_the_queue_of_their_namespace(
    story: LegacyStory, broker_story: BrokerStory
) -> None:
    robots = story.queue("robots", limit=4)
    story.label_namespace({MANAGED: "true", QUEUE: robots})
    broker_story.configure()

    broker_story.wait_condition("True", "4 brokers run.")
    story.wait_figures({robots: 4})
    broker_story.configure(brokerSpec=None)
    story.wait_figures({robots: 0})
