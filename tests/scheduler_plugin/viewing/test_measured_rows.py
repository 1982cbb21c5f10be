"""Entries by driver, selector and measure as people, programs and pictures see them.

No text has the digest of a key, and none has the name of an entry of another tree.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from scheduler_plugin.accounting.figures.queue_status import queue_object, queue_status
from scheduler_plugin.accounting.queues.name_conflicts import name_conflicts
from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.columns import lines_of
from scheduler_plugin.asking.simulations import Charged, QueueChange, SimulatedPod, Simulation
from scheduler_plugin.asking.tables import (
    charge_table,
    objects,
    queue_table,
    simulation_text,
    why_text,
)
from scheduler_plugin.dashboard.history import History
from scheduler_plugin.dashboard.lines import claim_lines, queue_lines, waiting_lines
from scheduler_plugin.judging.gangs import waiting_refusal
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.pages.prometheus import Figures
from scheduler_plugin.reclaiming.heads import Head, head_of
from scheduler_plugin.reclaiming.messages import Unserved, no_candidates_text, taken
from scheduler_plugin.reclaiming.victims.victims import Victim, held_by_claim
from scheduler_plugin.viewing.queue_rows import charge_rows, claim_rows, key_named, queue_rows
from scheduler_plugin.viewing.sharing_rows import claim_row
from scheduler_plugin.viewing.why import Why, why
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_queue_object,
    a_request,
    a_result,
    a_world,
    claim_uid,
    their_class,
)

GPU = "gpu.example.com"
MEMORY = {
    "name": "memory",
    "driver": GPU,
    "measure": {"capacity": "memory"},
    "quota": "40Gi",
    "limit": "100Gi",
}
GPUS = {"name": "gpus", "driver": GPU, "quota": 1, "limit": 4}
ELSEWHERE = {"name": "memory", "driver": GPU, "measure": {"capacity": "hbm"}}


def a_gpu(name: str) -> dict[str, Any]:
    capacity = {"memory": {"value": "40Gi"}, "hbm": {"value": "16Gi"}}
    return {"name": name, "capacity": capacity}


def an_allocated(name: str, device: str, queue: str) -> Any:
    result = a_result(driver=GPU, pool="a", device=device)
    return a_claim(name, requests=[a_request("gpu")], results=[result], queue=queue, pods=[name])


@pytest.fixture
def world() -> World:
    """Two claims of vision, a pod that waits for a third, and another tree with the same name."""
    found = a_world(
        a_queue("all", resources=[MEMORY]),
        a_queue("vision", parent="all", resources=[MEMORY, GPUS]),
        a_queue("other", resources=[ELSEWHERE]),
        their_class("gpu", f"device.driver == '{GPU}'"),
        an_allocated("one", "gpu-1", "vision"),
        an_allocated("two", "gpu-2", "vision"),
        an_allocated("far", "gpu-3", "other"),
        a_claim("three", requests=[a_request("gpu")]),
        *(
            a_pod(name, queue=queue, claims=(name,), node="n", phase="Running")
            for name, queue in (("one", "vision"), ("two", "vision"), ("far", "other"))
        ),
        a_pod("three", queue="vision", claims=("three",)),
    )
    devices = [a_gpu(f"gpu-{number}") for number in range(1, 5)]
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "n", "devices": devices}
    found.put_slice(slice_view({"metadata": {"name": "gpus"}, "spec": spec}))
    return found


def keys(world: World) -> list[ResourceKey]:
    return [key for queue in world.facts.tree for key in queue.shares]


def the_why(world: World) -> Why:
    found = why(world, "default", "three", NOW)
    assert found is not None
    return found


def table(*parts: Any) -> list[str]:
    return list(lines_of(parts))


def test_queues_are_shown_with_quantities(world: World) -> None:
    rows = list(queue_rows(world))

    assert [line.split()[:3] for line in table(queue_table(rows))] == [
        ["QUEUE", "CLASS", "USAGE"],
        ["all", "gpus", "2"],
        ["all", "memory", "80Gi"],
        ["vision", "gpus", "2"],
        ["vision", "memory", "80Gi"],
        ["other", "memory", "16Gi"],
    ]
    (memory,) = [row for row in objects(rows) if row["queue"] == "vision" and row["depth"] == 1][1:]
    assert memory == {
        "queue": "vision",
        "depth": 1,
        "device_class": "memory",
        "usage": "80Gi",
        "non_preemptible": "0",
        "requested": "120Gi",
        "quota": "40Gi",
        "limit": "100Gi",
    }
    (gpus,) = [row for row in objects(rows) if row["device_class"] == "gpus" and row["depth"] == 1]
    assert (gpus["usage"], gpus["quota"], gpus["limit"]) == (2, 1, 4)


def test_claims_cost_what_the_entries_of_their_tree_charge(world: World) -> None:
    costs = {row.name: row.cost for row in claim_rows(world)}

    assert costs == {
        "one": (("gpus", 1), ("memory", "40Gi")),
        "two": (("gpus", 1), ("memory", "40Gi")),
        "three": (("gpus", 1), ("memory", "40Gi")),
        "far": (("memory", "16Gi"),),
    }
    assert "gpus: 1, memory: 40Gi" in table(charge_table(tuple(claim_rows(world))))[2]


def test_why_says_what_each_entry_charges_and_which_measure_is_lacking(world: World) -> None:
    found = the_why(world)

    assert (found.reason, found.sentence) == (
        "OverLimit",
        'ResourceClaim default/three does not fit: queue "vision" uses 80Gi memory, 40Gi more'
        " would pass its limit of 100Gi. Entry memory counts capacity memory of driver"
        f" {GPU}.",
    )
    assert found.claims == (
        "ResourceClaim default/three is not allocated and charged to no queue. It costs at most"
        " 1 gpus, 40Gi memory.",
    )
    shown = [(f.queue, str(f.device_class)) for f in found.figures]
    assert shown == [("vision", "gpus"), ("vision", "memory"), ("all", "memory")]
    (said, *_) = objects([found])[0]["figures"][1:]
    assert (said["device_class"], said["added"], said["limit"]) == ("memory", "40Gi", "100Gi")
    runs = why(world, "default", "one")
    assert runs is not None
    assert runs.claims == (
        "ResourceClaim default/one is allocated and charged to vision. It is charged 1 gpus,"
        f" 40Gi memory for device gpu-1 of driver {GPU}.",
    )


def test_pictures_get_numbers_and_texts(world: World) -> None:
    lines = [
        msgspec.json.decode(line.body) for line in queue_lines(world, lambda _: Charges()) if line
    ]

    memory = next(line for line in lines if line["queue"] == "vision" and "texts" in line)
    assert (memory["device_class"], memory["usage"], memory["limit"]) == (
        "memory",
        80 * 2**30,
        100 * 2**30,
    )
    assert memory["texts"] == {
        "usage": "80Gi",
        "non_preemptible": "0",
        "requested": "120Gi",
        "quota": "40Gi",
        "limit": "100Gi",
        "share": "0",
        "waiting": "40Gi",
    }
    gpus = next(line for line in lines if line["queue"] == "vision" and "texts" not in line)
    assert (gpus["device_class"], gpus["usage"], gpus["limit"]) == ("gpus", 2, 4)


def test_history_has_amounts_of_measures_in_their_unit(world: World) -> None:
    key, history = key_named(world, QueueName("vision"), "memory"), History()
    assert key == keys(world)[0]
    history.begin(1.0)
    history.put(("vision", key), 80 * 2**30 * 1000, 2**70)

    past = history.of(("vision", key))

    assert past.usage == (80 * 2**30,)
    assert past.requested == ((2**63 - 1) / 1000,)


async def page_of(world: World) -> str:
    figures = Figures(world, dict, lambda: "", dict, [])
    return (await figures.page()).decode()


async def test_metrics_have_one_series_for_each_name_in_the_unit_of_the_measure(
    world: World,
) -> None:
    samples = [
        (sample.name, tuple(sample.labels.items()), sample.value)
        for family in text_string_to_metric_families(await page_of(world))
        for sample in family.samples
    ]

    series = [each[:2] for each in samples]
    assert len(series) == len(set(series))
    usage = {
        dict(labels)["queue"]: value
        for name, labels, value in samples
        if name.endswith("queue_usage") and dict(labels)["device_class"] == "memory"
    }
    assert usage == {"all": 80 * 2**30, "vision": 80 * 2**30, "other": 16 * 2**30}


async def test_metrics_of_uses_without_a_queue_omit_names_with_two_meanings(world: World) -> None:
    result = a_result(driver=GPU, pool="a", device="gpu-4")
    claim = a_claim("lost", requests=[a_request("gpu")], results=[result], pods=["lost"])
    world.put_claim(claim)
    world.put_pod(a_pod("lost", queue="", claims=("lost",), node="n", phase="Running"))

    lines = [line for line in (await page_of(world)).splitlines() if "_unattributed{" in line]

    assert [line.partition("{")[2] for line in lines] == ['device_class="gpus"} 1.0']


async def test_nobody_sees_the_digest_of_a_key(world: World) -> None:
    rows, found = list(queue_rows(world)), the_why(world)
    refused = waiting_refusal(*_waiting(world))
    assert refused is not None
    changes = tuple(QueueChange(before=None, after=row, problem="x") for row in rows)
    charged = tuple(
        Charged(queue=QueueName("vision"), device_class=key, added=5, what="w")
        for key in keys(world)
    )
    pod = SimulatedPod(pod="p", reason="Admitted", sentence="s", charged=charged)
    simulation = Simulation(pods=(pod,), queues=changes)
    lines = [
        *queue_lines(world, lambda _: Charges()),
        *claim_lines(world),
        *waiting_lines(world, lambda _: None),
    ]
    statuses = [
        queue_status(queue_object(obj), world, NOW)
        for obj in (
            a_queue_object("all", resources=[MEMORY]),
            a_queue_object("vision", parent="all", resources=[MEMORY, GPUS]),
        )
    ]
    assert all(statuses)
    told = [
        *table(queue_table(rows, {(row.queue, row.device_class): 7 for row in rows})),
        *table(charge_table(tuple(charge_rows(world, QueueName("vision"))))),
        *table(*why_text(found)),
        *table(*simulation_text(simulation)),
        json.dumps(objects([*rows, *claim_rows(world), found, simulation])),
        json.dumps([msgspec.to_builtins(claim_row(world, c)) for c in world.facts.claims()]),
        json.dumps(statuses),
        *(text for line in lines if line for text in (line.body.decode(), line.text)),
        await page_of(world),
        refused.sentence,
        *_reclaiming(world),
        *name_conflicts(world.facts.tree),
    ]

    digests = {key.partition("\0")[2] for key in keys(world)}
    assert len(digests) == 3
    for text in told:
        assert "\0" not in text
        assert "\\u0000" not in text
        assert not any(digest in text for digest in digests)


def _waiting(world: World) -> Any:
    return world.facts.pod_named("default", "three"), world


def _reclaiming(world: World) -> list[str]:
    """What preemption says for a pod of a queue below its quota."""
    world.put_queue(a_queue("low", resources=[MEMORY, GPUS]))
    world.put_claim(a_claim("four", requests=[a_request("gpu")]))
    pod = a_pod("four", queue="low", claims=("four",))
    world.put_pod(pod)
    head = head_of(pod, world)
    assert isinstance(head, Head)
    victim = held_by_claim(claim_uid("one"), world)
    assert isinstance(victim, Victim)
    unserved = Unserved(short_of=tuple(key for key, _ in head.adds), shortfall=None)
    found = [
        taken(head, [victim], []),
        no_candidates_text(head, unserved, is_within_share=True, is_below_quota=True),
    ]
    assert "is within the share of gpus, memory that is guaranteed" in found[0]
    return found
