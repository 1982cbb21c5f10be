"""What counts anew when a queue admits other namespaces."""

from __future__ import annotations

from scheduler_plugin.objects.names import QueueName
from tests.scheduler_plugin.builders import a_claim, a_pod, a_queue, a_world, amounts, put

VISION = QueueName("vision")


def test_a_labelled_claim_is_asked_of_its_queue_once_that_admits_who_waits() -> None:
    """The pod that names it is of another queue."""
    world = a_world(
        a_queue("vision", namespaceSelector=None, onvif=(1, 1)),
        a_queue("robots", onvif=(1, 1)),
        a_claim("cam", queue="vision"),
        a_pod("p", queue="robots", claims=("cam",)),
    )
    assert world.ledger.of(VISION).requested == amounts()

    put(world, a_queue("vision", onvif=(1, 1)))
    assert world.ledger.of(VISION).requested == amounts(onvif=1)

    world.delete_queue(VISION)
    assert world.ledger.of(VISION).requested == amounts()
