"""What devices cost is noted on their claim, and counts once their slices are gone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from scheduler_plugin.accounting.charges.costs import claim_cost
from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.charge_notes import ChargeNote
from scheduler_plugin.cleanup.claim_cleanup import ClaimCleanup
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.measures import amount_text
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    claim_uid,
    their_class,
)

GPU = "gpu.example.com"
MEMORY = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}
MIG = {"name": "mig", "driver": GPU, "measure": {"counter": {"set": "*", "name": "memory"}}}
GPUS = {"name": "gpus", "driver": GPU}
H200 = {"name": "h200", "driver": GPU, "selector": "device.attributes['x'].model == 'H200'"}
EXPRESSIONS = (H200["selector"],)
DEVICE = {
    "name": "g0",
    "capacity": {"memory": {"value": "80Gi"}},
    "consumesCounters": [{"counterSet": "c", "counters": {"memory": {"value": "81Gi"}}}],
}
PATH = f"{GPU}/a/g0"


def sliced(**fields: Any) -> Any:
    spec = {
        "driver": GPU,
        "pool": {"name": "a"},
        "nodeName": "a",
        "devices": [{**DEVICE, **fields}],
    }
    return slice_view({"metadata": {"name": "s"}, "spec": spec})


def in_use(note: str = "", **fields: Any) -> ClaimView:
    result = a_result(driver=GPU, pool="a", device="g0", **fields)
    claim = a_claim(
        "cam", requests=[a_request("gpu")], results=[result], queue="vision", pods=["a"]
    )
    return replace(claim, charge_note=note)


@pytest.fixture
def world() -> World:
    found = a_world(
        a_queue("root", resources=[MIG], namespaceSelector=None),
        a_queue("vision", parent="root", resources=[MEMORY, GPUS, H200]),
        a_queue("other", resources=[{**MEMORY, "name": "others"}]),
        their_class("gpu", f"device.driver == '{GPU}'"),
        a_pod("a", queue="vision", claims=["cam"], node="a"),
    )
    found.put_slice(sliced())
    found.put_claim(in_use())
    return found


def step(world: World) -> Any:
    return ClaimCleanup(world).next_step(claim_uid("cam"), NOW)


def evaluate(world: World, *, says: bool) -> None:
    (looks,) = world.facts.open_looks.by_expressions().values()
    world.put_selected(EXPRESSIONS, dict.fromkeys(looks, says))


def noted(world: World) -> dict[str, Any]:
    """The note that is to be written, which the claim has from then on."""
    found = step(world)
    assert isinstance(found, ChargeNote)
    claim = world.facts.claim(claim_uid("cam"))
    assert claim is not None
    world.put_claim(replace(claim, charge_note=found.value or ""))
    assert step(world) is None
    note: dict[str, Any] = json.loads(found.value or "{}")
    return note


def cost(world: World) -> dict[str, str]:
    claim = world.facts.claim(claim_uid("cam"))
    assert claim is not None
    found = claim_cost(claim, world.facts.catalog)
    return {str(key): amount_text(key, amount) for key, amount in found if str(key) != "others"}


def test_what_entries_of_the_owners_tree_are_charged_is_noted_once_it_is_known(
    world: World,
) -> None:
    assert step(world) is None, "the selector is not evaluated"

    evaluate(world, says=True)

    assert noted(world) == {PATH: {"memory": "80Gi", "mig": "81Gi", "h200": "1"}}


@pytest.mark.parametrize("says", [True, False])
def test_a_device_costs_the_same_after_its_slice_is_gone(world: World, says: bool) -> None:
    evaluate(world, says=says)
    noted(world)
    before = cost(world)

    world.delete_slice("s")

    assert cost(world) == before
    assert ("h200" in before) is says
    assert step(world) is None, "the note stays"


def test_the_note_follows_the_device_while_it_is_listed(world: World) -> None:
    evaluate(world, says=False)
    noted(world)

    world.put_slice(sliced(capacity={"memory": {"value": "40Gi"}}))
    evaluate(world, says=False)

    assert noted(world) == {PATH: {"memory": "40Gi", "mig": "81Gi"}}


def test_a_restart_without_the_slice_charges_what_is_noted(world: World) -> None:
    evaluate(world, says=False)
    noted(world)
    gpu = their_class("gpu", f"device.driver == '{GPU}'")
    fresh = a_world(*world.facts.tree, gpu, *world.facts.claims(), *world.facts.pods())

    assert cost(fresh) == cost(world)
    assert step(fresh) is None


@pytest.mark.parametrize("note", ["", "{", "[]", '{"a": 1}', f'{{"{PATH}": {{"memory": "x"}}}}'])
def test_a_note_that_says_nothing_frees_no_device(world: World, note: str) -> None:
    world.delete_slice("s")
    world.put_claim(in_use(note))

    assert cost(world)["gpus"] == "1"


def test_nothing_is_noted_that_the_allocation_says(world: World) -> None:
    world.put_queue(a_queue("root", namespaceSelector=None))
    world.put_queue(a_queue("vision", parent="root", resources=[MEMORY, GPUS]))
    world.put_claim(in_use(consumedCapacity={"memory": "10Gi"}))

    assert step(world) is None


def test_the_note_goes_with_the_entries_that_need_it(world: World) -> None:
    evaluate(world, says=True)
    noted(world)

    world.put_queue(a_queue("root", namespaceSelector=None))
    world.put_queue(a_queue("vision", parent="root", resources=[GPUS]))

    assert noted(world) == {}


def test_nothing_is_noted_where_queues_list_classes_only() -> None:
    claim = in_use()
    world = a_world(
        a_queue("vision", gpu=(0, 4)), claim, a_pod("a", queue="vision", claims=["cam"], node="a")
    )

    assert step(world) is None
