"""The shares that statuses say, and how long they stay."""

from __future__ import annotations

from scheduler_plugin.accounting.figures.queue_status import (
    StatusInputs,
    queue_object,
    queue_status,
)
from scheduler_plugin.accounting.figures.share_figures import SECONDS, ShareFigures
from scheduler_plugin.objects.names import QueueName
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_queue_object,
    a_request,
    a_world,
    amounts,
    an_allocated_claim,
    put,
)

VISION, ROBOTS = QueueName("vision"), QueueName("robots")


def test_what_runs_and_what_waits_share_what_limits_leave() -> None:
    world = a_world(
        a_queue("root", onvif=(0, 5)),
        a_queue("vision", parent="root", onvif=(2, -1, 2)),
        a_queue("robots", parent="root", onvif=(0, -1)),
        an_allocated_claim("cam", "a", queue="robots"),
        a_pod("a", queue="robots", node="n", claims=["cam"]),
        a_pod("b", queue="robots", node="n", requests={"akri.sh/onvif": 4}),
    )
    figures = ShareFigures(world)
    assert figures.of(ROBOTS, 0.0) == amounts(onvif=5)
    put(
        world,
        a_claim("wanted", requests=[a_request(count=9)]),
        a_pod("c", queue="vision", claims=["wanted"]),
    )

    assert figures.of(ROBOTS, SECONDS - 1) == amounts(onvif=5)
    assert figures.of(ROBOTS, SECONDS) == amounts(onvif=1)
    assert figures.of(VISION, SECONDS) == amounts(onvif=4)
    assert figures.of(QueueName("root"), SECONDS) == amounts(onvif=5)


def test_the_status_shows_it() -> None:
    obj = a_queue_object("vision", onvif=(2, 4))
    world = a_world()
    found = queue_object(obj)
    world.put_queue(found.queue)

    status = queue_status(found, world, NOW, StatusInputs(share=amounts(onvif=3)))

    assert status is not None
    assert status["share"] == {"onvif": 3}
