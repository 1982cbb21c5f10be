"""What people are shown of queues, claims and pods."""

from __future__ import annotations

from typing import Any

from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.columns import Part, lines_of
from scheduler_plugin.asking.tables import charge_table, objects, queue_table, why_text
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.devices.devices import instance_view
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.viewing.queue_rows import QueueRow, charge_rows, claim_rows, queue_rows
from scheduler_plugin.viewing.why import why
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_world,
    an_allocated_claim,
    our_class,
)

ONVIF = ResourceKey("onvif")
VISION, ROBOTS = QueueName("vision"), QueueName("robots")


def shared_world(*more: object) -> World:
    """Vision pays for a camera that a pod of robots uses, too."""
    return a_world(
        a_queue("research", onvif=(2, 4)),
        a_queue("vision", parent="research", onvif=(1, 1)),
        a_queue("robots", parent="research", onvif=(1, -1)),
        an_allocated_claim("cam", "a", "b", queue="vision"),
        a_pod("a", queue="vision", claims=("cam",), node="n", phase="Running"),
        a_pod("b", queue="robots", claims=("cam",), node="n", phase="Running"),
        *more,
    )


def with_cameras(world: World, *names: str, **spec: Any) -> World:
    """Cameras that node n sees, of which the first is that of the claim `cam`."""
    spec = {"configurationName": "onvif", "capacity": 1, "nodes": ["n"], **spec}
    for name in names or ("onvif-aaaaaa", "onvif-bbbbbb"):
        world.put_instance(instance_view({"metadata": {"name": name}, "spec": spec}))
    return world


def shown(*parts: Part) -> str:
    return "".join(f"{line}\n" for line in lines_of(parts))


def test_queues_stand_below_their_parents_with_what_they_pay_for() -> None:
    rows = {row.queue: row for row in queue_rows(shared_world())}

    assert list(rows) == ["research", "robots", "vision"]
    assert rows[VISION] == QueueRow(
        queue=VISION,
        depth=1,
        device_class=ResourceKey("onvif"),
        usage=1,
        requested=1,
        quota=1,
        limit=1,
    )
    assert (rows[ROBOTS].usage, rows[ROBOTS].quota, rows[ROBOTS].limit) == (0, 1, None)
    assert (rows[QueueName("research")].depth, rows[QueueName("research")].usage) == (0, 1)


def test_queues_in_a_circle_and_those_of_no_parent_stand_alone() -> None:
    world = a_world(
        a_queue("a", parent="b"),
        a_queue("b", parent="a"),
        a_queue("below", parent="a"),
        a_queue("lost", parent="nobody"),
    )

    rows = [(row.queue, row.depth) for row in queue_rows(world)]

    assert rows == [("a", 0), ("below", 1), ("b", 0), ("lost", 0)]


def test_a_queue_pays_for_its_claims_and_uses_others_for_nothing() -> None:
    world = shared_world(
        a_pod("own", queue="robots", requests={"akri.sh/onvif": "1"}, node="n", phase="Running")
    )

    (paid,) = charge_rows(world, VISION)
    own, used = charge_rows(world, ROBOTS)

    assert (paid.name, paid.cost, paid.users) == (
        "cam",
        (("onvif", 1),),
        ("default/a", "default/b"),
    )
    assert (own.kind, own.name, own.payer, own.cost) == ("Pod", "own", "robots", (("onvif", 1),))
    assert (used.name, used.payer, used.users) == ("cam", "vision", ("default/b",))


def test_claims_that_are_not_accounted_are_not_shown() -> None:
    world = shared_world(a_claim("other", requests=[]))

    assert [row.name for row in claim_rows(world)] == ["cam"]


def test_why_of_a_pod_that_is_refused_tells_rule_and_figures() -> None:
    pod = a_pod("c", queue="vision", claims=("second",))
    world = shared_world(a_claim("second"), pod)

    found = why(world, "default", "c")

    assert found
    assert found.reason == "OverLimit"
    assert "vision" in found.sentence
    assert [(f.queue, f.usage, f.added, f.limit) for f in found.figures] == [
        ("vision", 1, 1, 1),
        ("research", 1, 1, 4),
    ]
    assert found.claims == (
        "ResourceClaim default/second is not allocated and charged to no queue.",
    )
    assert "OverLimit" in shown(*why_text(found))


def test_why_of_a_pod_that_runs_waits_or_is_admitted() -> None:
    world = with_cameras(
        shared_world(
            a_claim("second"),
            a_pod("c", queue="robots", claims=("second",)),
            a_pod("d", queue="robots", claims=("second",), phase="Succeeded", node="n"),
        )
    )

    reasons = {name: found.reason for name in "abcd" if (found := why(world, "default", name))}

    assert reasons == {"a": "Running", "b": "Running", "c": "Admitted", "d": "Ended"}
    assert why(world, "default", "nobody") is None


def test_tables_say_what_rows_say_and_take_names_as_they_are() -> None:
    world = shared_world()
    world.put_class(our_class("[red]"))
    world.put_queue(a_queue("[bold]x[/bold]", onvif=(1, 2)))

    table = shown(queue_table(tuple(queue_rows(world))))
    charges = shown(charge_table(tuple(claim_rows(world))))

    assert "[bold]x[/bold]" in table
    assert "████████████" in table.splitlines()[-1]
    assert "default/a, default/b" in charges
    assert objects(claim_rows(world))[0]["payer"] == "vision"
