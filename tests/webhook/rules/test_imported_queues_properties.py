"""What `kubectl moorage import` prints is admitted, Queue by Queue, in its order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.importing.api import translated
from scheduler_plugin.objects.api import parse_queue
from tests.scheduler_plugin.importing.test_translation_properties import (
    OF_KAI,
    OF_KUEUE,
    Objects,
)
from tests.scheduler_plugin.importing.translations import GPU_CLASS
from tests.webhook.builders import a_review, rule_context
from webhook.rules.queues import judge_written


@given(st.tuples(OF_KUEUE, OF_KAI).map(lambda both: [*both[0], *both[1]]))
def test_queues_of_any_trees_are_admitted_in_the_order_in_which_they_are_printed(
    world: Objects,
) -> None:
    context = rule_context()
    for body in translated(world, {}, GPU_CLASS).queues:
        found = judge_written(a_review("Queue", body), context)
        assert found.problems == ()
        context.tree.put(parse_queue(body))
