"""The door: what it says of a queue is usable from outside."""

from __future__ import annotations

from scheduler_plugin import api
from tests.scheduler_plugin.builders import a_queue_object


def test_queue_can_be_parsed_and_placed_through_the_door_alone() -> None:
    queue = api.parse_queue(a_queue_object("vision", parent="research"))
    assert isinstance(queue, api.Queue)
    tree = api.QueueTree()

    tree.put(queue)

    assert tree.path(api.QueueName("vision")) == ("vision",)
    assert tree.children(api.QueueName("research")) == ("vision",)
