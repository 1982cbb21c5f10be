"""Which Queues must not go: the finalizer comes before the charge and goes after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.charged_queues import (
    IDLE_SECONDS,
    ChargedQueues,
    is_charged,
    without_finalizer,
)
from scheduler_plugin.judging.verdicts import Admitted
from scheduler_plugin.objects.names import CHARGES_FINALIZER, Queue, QueueName, Reason
from scheduler_plugin.objects.queue_objects import parse_queue
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_queue_object,
    a_world,
    admit,
    amounts,
    an_allocated_claim,
    put,
    refusal,
    usage,
    verdict,
)

ROOT, VISION, ROBOTS = QueueName("root"), QueueName("vision"), QueueName("robots")


def a_family(*objects: object, **vision: Any) -> World:
    return a_world(
        a_queue("root"),
        replace(a_queue("vision", parent="root"), **vision),
        a_queue("robots", parent="root"),
        *objects,
    )


def present(world: World, *names: str) -> None:
    for name in names:
        found = world.facts.tree.get(QueueName(name))
        assert found is not None
        world.put_queue(replace(found, has_finalizer=True))


def names(queues: tuple[Queue, ...]) -> list[str]:
    return [queue.name for queue in queues]


RUNNING = a_pod("a", queue="vision", node="n", requests={"akri.sh/onvif": 1})


def test_what_an_object_says_of_its_end_is_read() -> None:
    body = a_queue_object()
    body["metadata"] |= {
        "finalizers": ["example.com/other", CHARGES_FINALIZER],
        "deletionTimestamp": "2026-11-21T12:00:00Z",
    }

    found = parse_queue(body)

    assert isinstance(found, Queue)
    assert (found.has_finalizer, found.is_deleting) == (True, True)
    assert (a_queue().has_finalizer, a_queue().is_deleting) == (False, False)


def test_queue_is_charged_with_all_above_it_for_what_runs_and_what_is_about_to() -> None:
    running = a_family(RUNNING)
    deciding = a_family(a_claim())
    admit(deciding, a_pod("b", queue="vision", claims=["cam"]))

    for world in (running, deciding):
        assert [is_charged(name, world) for name in (ROOT, VISION, ROBOTS)] == [True, True, False]
    assert not is_charged(VISION, a_family())


def test_queue_that_owns_a_claim_that_costs_nothing_is_charged() -> None:
    claim = an_allocated_claim("cam", "a", queue="vision", results=[])

    assert is_charged(VISION, a_family(claim))


def test_all_on_the_path_get_the_finalizer_before_the_charge() -> None:
    world = a_family(a_claim())
    admit(world, a_pod("b", queue="vision", claims=["cam"]))

    before = names(without_finalizer([VISION, ROBOTS], world))
    present(world, "root", "vision")

    assert before == ["vision", "root"]
    assert without_finalizer([VISION, ROBOTS], world) == ()


def test_charge_that_began_without_the_plugin_gets_it_when_it_is_seen() -> None:
    world = a_family(RUNNING)
    found = ChargedQueues(world).look(VISION, 0.0)

    assert found is not None
    assert found.present


def test_finalizer_goes_when_the_queue_has_been_charged_for_nothing_for_a_while() -> None:
    """Also where it was added, and the process killed before the binding."""
    world = a_family(RUNNING)
    present(world, "vision", "root")
    queues = ChargedQueues(world)
    assert queues.look(VISION, 0.0) is None

    world.delete_pod(RUNNING.uid)
    at_once, soon = queues.look(VISION, 1.0), queues.look(VISION, IDLE_SECONDS)
    put(world, RUNNING)
    again = queues.look(VISION, IDLE_SECONDS + 1.0)
    world.delete_pod(RUNNING.uid)
    rests_anew = queues.look(VISION, IDLE_SECONDS + 2.0)
    found = queues.look(VISION, 2 * IDLE_SECONDS + 2.0)

    assert (at_once, soon, again, rests_anew) == (None, None, None, None)
    assert found is not None
    assert not found.present


def test_finalizer_goes_at_once_from_a_queue_that_is_being_deleted() -> None:
    world = a_family(has_finalizer=True, is_deleting=True)

    found = ChargedQueues(world).look(VISION, 0.0)

    assert found is not None
    assert not found.present


def test_nothing_is_added_to_a_queue_that_is_being_deleted() -> None:
    world = a_family(RUNNING, is_deleting=True)

    assert ChargedQueues(world).look(VISION, 0.0) is None


def test_queue_that_is_being_deleted_relieves_nobody_and_takes_nothing_new() -> None:
    world = a_family(RUNNING, a_claim(), has_finalizer=True, is_deleting=True)

    found = refusal(world, a_pod("b", queue="vision", claims=["cam"]))

    assert found.reason is Reason.QUEUE_NOT_FOUND
    assert found.sentence == (
        'ResourceClaim default/cam needs a queue, and queue "vision" is being deleted and takes'
        " no new charge."
    )
    assert usage(world, "root") == amounts(onvif=1)


def test_queue_below_one_that_is_being_deleted_takes_nothing_new() -> None:
    world = a_family(a_claim())
    world.put_queue(replace(a_queue("root"), is_deleting=True))

    found = refusal(world, a_pod("b", queue="vision", claims=["cam"]))

    assert 'queue "root", which is above queue "vision", is being deleted' in found.sentence


def test_claim_of_a_queue_that_is_being_deleted_may_be_joined_while_it_is_used() -> None:
    claim = an_allocated_claim("cam", "a", queue="vision", owner_pod="a")
    world = a_family(a_pod("a", queue="vision", node="n", claims=["cam"]), claim, is_deleting=True)

    assert isinstance(verdict(world, a_pod("b", queue="robots", claims=["cam"])), Admitted)


def test_claim_labelled_with_a_queue_that_is_being_deleted_is_charged_to_nobody_new() -> None:
    world = a_family(a_claim(queue="vision"), is_deleting=True)

    found = refusal(world, a_pod("b", queue="robots", claims=["cam"]))

    assert found.sentence.startswith('ResourceClaim default/cam belongs to queue "vision", and')
