"""Entries with a selector: which devices count, and what is evaluated for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_plugin.accounting.charges.costs import claim_cost
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.devices.device_looks import cel_device
from scheduler_plugin.objects.devices.devices import slice_view
from tests.scheduler_plugin.builders import (
    a_claim,
    a_queue,
    a_request,
    a_result,
    a_world,
    their_class,
    usage,
)

GPU = "gpu.example.com"
MODEL = f"device.attributes['{GPU}'].model == "
H200 = {"name": "h200", "driver": GPU, "selector": f"{MODEL}'H200'", "limit": 4}
MEMORY = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}


def a_gpu(name: str, model: str, memory: str, **fields: Any) -> dict[str, Any]:
    attributes = {"model": {"string": model}, "serial": {"string": name}}
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": memory}},
        **fields,
    }


def sliced(*devices: dict[str, Any], name: str = "gpus") -> Any:
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "a", "devices": list(devices)}
    return slice_view({"metadata": {"name": name}, "spec": spec})


LARGE, SMALL = a_gpu("large", "H200", "141Gi"), a_gpu("small", "A100", "40Gi")


@pytest.fixture
def world() -> World:
    found = a_world(
        a_queue("vision", resources=[H200, MEMORY]),
        their_class("gpu", f"device.driver == '{GPU}'"),
    )
    found.put_slice(sliced(LARGE, SMALL))
    return found


def evaluate(world: World, says: Mapping[str, bool | None] | None = None) -> list[str]:
    """Evaluate all that is open as CEL would; returns the serial numbers, in order."""
    seen: list[str] = []
    while opened := world.facts.open_looks.by_expressions():
        for expressions, looks in opened.items():
            answers = {}
            for look in looks:
                own = cel_device(look)["attributes"][GPU]
                seen.append(own["serial"])
                (text,) = expressions
                answers[look] = text == f"{MODEL}'{own['model']}'" if says is None else says[text]
            world.put_selected(expressions, answers)
    return seen


def told(world: World, claim: Any) -> dict[str, int]:
    found = claim_cost(world.facts.claim(claim.uid) or claim, world.facts.catalog)
    return {str(key): amount for key, amount in found}


def allocated(device: str) -> Any:
    result = a_result(driver=GPU, pool="a", device=device)
    return a_claim(requests=[a_request("gpu")], results=[result], queue="vision", pods=["a"])


def asked(*selectors: str) -> Any:
    given: dict[str, Any] = {"selectors": [{"cel": {"expression": text}} for text in selectors]}
    return a_claim(requests=[a_request("gpu", **given)])


@pytest.mark.parametrize(("device", "counts"), [("large", 1), ("small", None)])
def test_an_allocated_device_counts_if_it_is_selected(
    world: World, device: str, counts: int | None
) -> None:
    claim = allocated(device)
    world.put_claim(claim)
    assert claim.uid in world.facts.open_looks
    assert dict(told(world, claim))["h200"] == 1, "until CEL said no it counts"

    assert evaluate(world) == [device]

    assert told(world, claim).get("h200") == counts
    assert {str(key): amount for key, amount in usage(world, "vision")}.get("h200") == counts
    assert claim.uid not in world.facts.open_looks


@pytest.mark.parametrize(("says", "counts"), [(None, 1), (True, 1), (False, None)])
def test_a_selector_that_cannot_be_evaluated_counts_all_devices(
    world: World, says: bool | None, counts: int | None
) -> None:
    claim = allocated("small")
    world.put_claim(claim)
    evaluate(world, {f"{MODEL}'H200'": says})

    assert told(world, claim).get("h200") == counts
    assert not world.facts.open_looks


def test_a_selector_that_takes_too_long_counts_all_devices(world: World) -> None:
    claim = allocated("small")
    world.put_claim(claim)

    world.put_too_slow((f"{MODEL}'H200'",))

    assert told(world, claim)["h200"] == 1
    assert not world.facts.open_looks


def test_a_request_costs_what_the_devices_can_that_it_selects(world: World) -> None:
    any_gpu, small = asked(), asked(f"{MODEL}'A100'")
    for claim in (any_gpu, small):
        world.put_claim(claim)
        evaluate(world)
        amounts = told(world, claim)
        expected = 40 if claim is small else 141
        assert amounts["memory"] == expected * 1000 * 1024**3
        assert amounts.get("h200") == (None if claim is small else 1)
        world.delete_claim(claim.uid)


def test_of_devices_that_differ_in_a_serial_number_the_first_is_evaluated(world: World) -> None:
    world.put_slice(sliced(*(a_gpu(f"gpu-{n}", "H200", "141Gi") for n in range(100))))
    world.put_claim(asked())

    assert len(evaluate(world)) < 110
    world.put_slice(sliced(a_gpu("other", "H200", "141Gi"), name="more"))
    assert evaluate(world) == []


def test_a_request_that_gets_nothing_costs_nothing(world: World) -> None:
    claim = asked(f"{MODEL}'B200'")
    world.put_claim(claim)
    evaluate(world)

    assert told(world, claim) == {}
    world.put_slice(sliced(a_gpu("new", "B200", "192Gi"), name="more"))
    evaluate(world)
    assert told(world, claim) == {"memory": 192 * 1000 * 1024**3}


def test_a_device_that_changes_is_evaluated_again(world: World) -> None:
    claim = allocated("large")
    world.put_claim(claim)
    evaluate(world)

    world.put_slice(sliced(a_gpu("large", "A100", "40Gi"), SMALL))
    assert claim.uid in world.facts.open_looks
    evaluate(world)
    assert told(world, claim) == {"memory": 40 * 1000 * 1024**3}


def test_nothing_is_evaluated_where_no_queue_counts_by_device(world: World) -> None:
    world.put_claim(allocated("large"))
    world.put_queue(a_queue("vision", resources=[{"deviceClass": "gpu", "limit": 4}]))

    assert not world.facts.open_looks
