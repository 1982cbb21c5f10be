"""The door: what it promises is there, and what it says of a queue is usable from outside."""

from __future__ import annotations

from scheduler_plugin import api
from tests.scheduler_plugin.builders import a_queue_object


def test_everything_that_the_door_names_is_there() -> None:
    assert [name for name in api.__all__ if not hasattr(api, name)] == []


def test_queue_can_be_parsed_and_placed_through_the_door_alone() -> None:
    queue = api.parse_queue(a_queue_object("vision", parent="research"))
    assert isinstance(queue, api.Queue)
    tree = api.QueueTree()

    tree.put(queue)

    ((condition, _),) = tree.conditions(queue.name)
    assert condition is api.QueueCondition.PARENT_MISSING
