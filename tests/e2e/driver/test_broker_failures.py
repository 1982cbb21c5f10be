"""Brokers where processes, nodes and people fail, on a cluster with DRA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.driver import broker_plays, installation
from tests.e2e.driver.brokers import WORDS, BrokerStory
from tests.e2e.driver.lost_nodes import enter_as_akri
from tests.e2e.driver.stories import Story
from tests.e2e.sharing import write_gate

PODS = "request.resource.resource == 'pods'"
HASH_DIGITS = 12


def test_more_brokers_than_a_configuration_may_have_wait_for_a_word(
    broker_story: BrokerStory,
) -> None:
    broker_plays.play_too_many(broker_story)


def test_beside_akris_own_controller_nothing_is_made(broker_story: BrokerStory) -> None:
    broker_plays.play_akri_beside(broker_story)


def test_a_driver_killed_while_a_broker_is_made_makes_no_other_one(
    broker_story: BrokerStory, story: Story
) -> None:
    made = ("pods", "CREATE")
    with write_gate.bindings_stopped(story.cluster, story.namespace, PODS, made) as gate:
        broker_story.configure()
        broker_story.until("the API server judges a broker", lambda: gate.stopped)
        story.drivers.shared.kill()
        gate.allow()

    broker_story.wait_counts(2, 4, 2, 1)
    assert set(Counter(map(_place, broker_story.pods())).values()) == {1}


def _place(pod: dict[str, Any]) -> tuple[str, str]:
    labels = pod["metadata"]["labels"]
    return labels["akri.sh/instance"], labels["akri.sh/target-node"]


def test_the_broker_of_a_lost_node_goes_with_it_and_the_others_stay(
    broker_story: BrokerStory, lost_node: str
) -> None:
    """A pod for a Node without a kubelet waits for ever."""
    broker_story.configure(capacity=3)
    broker_story.wait_counts(2, 4, 2, 1)
    stay = {pod["metadata"]["uid"] for pod in broker_story.running()}
    instance = broker_story.instances()[0]
    enter_as_akri(broker_story.cluster, instance, lost_node)
    broker_story.until("it has a broker", lambda: _on(broker_story, lost_node))

    broker_story.cluster.kubectl("delete", "node", lost_node)

    broker_story.until("its broker is gone", lambda: not _on(broker_story, lost_node))
    assert {pod["metadata"]["uid"] for pod in broker_story.running()} == stay


def _on(story: BrokerStory, node: str) -> list[dict[str, Any]]:
    return [pod for pod in story.pods() if pod["metadata"]["labels"]["akri.sh/target-node"] == node]


@pytest.fixture
def longer_hashes(story: Story) -> Iterator[None]:
    """The drivers of both nodes name new Instances with more digits."""
    for handle in story.drivers.nodes.values():
        handle.stop()
    flags = (f"--instance-hash-digits={HASH_DIGITS}",)
    others = [
        installation.start(story.cluster, installation.node_driver(node, *flags))
        for node in story.drivers.nodes
    ]
    yield
    for handle in others:
        handle.stop()
    for handle in story.drivers.nodes.values():
        handle.start()
        handle.wait_ready()


@pytest.mark.usefixtures("longer_hashes")
def test_instances_with_longer_hashes_have_brokers(broker_story: BrokerStory) -> None:
    broker_plays.play_all_scheduled(broker_story)
    digits = {len(one["metadata"]["name"].rpartition("-")[2]) for one in broker_story.instances()}
    assert digits == {HASH_DIGITS}
    assert len(broker_story.services()) == len(WORDS) + 1
