"""The plugin's figures: what queues have, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from kube.events.api import Event, EventType, ObjectReference
from scheduler_plugin.accounting.world import World
from scheduler_plugin.extender import prometheus_calls
from scheduler_plugin.extender.messages import NotAnswered, Passed
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.names import QueueName, Reason
from scheduler_plugin.pages import prometheus
from scheduler_plugin.pages.prometheus import Figures, counting_evictions
from tests.scheduler_plugin.builders import a_pod, a_queue, a_world, an_allocated_claim

PREFIX = "moorage_scheduler_plugin_"


async def figures(world: World, waiting: Mapping[QueueName, int] | None = None) -> dict[str, float]:
    """All that is told, as `name{value,value}` in the order of the labels' names."""
    told = Figures(
        world,
        lambda: waiting or {},
        lambda: "Not yet.",
        lambda: {"pods of v1": (2, "missing-right")},
        [prometheus_calls.REGISTRY],
    )
    families = text_string_to_metric_families((await told.page()).decode())
    return {
        f"{sample.name.removeprefix(PREFIX)}{{{','.join(_values(sample.labels))}}}": sample.value
        for family in families
        for sample in family.samples
    }


def _values(labels: Mapping[str, str]) -> list[str]:
    return [value for _, value in sorted(labels.items())]


def shared_world() -> World:
    """Vision pays for a camera that a pod of robots uses, too."""
    return a_world(
        a_queue("vision", onvif=(1, 4)),
        a_queue("robots", onvif=(0, -1)),
        an_allocated_claim("cam", "a", "b", queue="vision"),
        a_pod(
            "a", queue="vision", claims=("cam",), node="n", phase="Running", non_preemptible=True
        ),
        a_pod("b", queue="robots", claims=("cam",), node="n", phase="Running"),
    )


async def test_what_queues_have_is_what_the_ledger_says() -> None:
    told = await figures(shared_world(), {QueueName("robots"): 3})

    of_vision = {
        "queue_usage": 1,
        "queue_usage_non_preemptible": 1,
        "queue_requested": 1,
        "queue_quota": 1,
        "queue_limit": 4,
        "queue_share": 1,
        "queue_held": 0,
    }
    assert {name: told[f"{name}{{onvif,vision}}"] for name in of_vision} == of_vision
    assert told["queue_limit{onvif,robots}"] == float("inf")
    assert (told["queue_claims{vision}"], told["queue_claims_shared_out{vision}"]) == (1, 1)
    assert (told["queue_foreign_claims{robots}"], told["queue_foreign_claims{vision}"]) == (1, 0)
    assert told["waiting_pods{robots}"] == 3
    assert told["queue_rows_left_out{}"] == 0


async def test_what_may_be_taken_back_and_whose_quota_is_not_met_is_told() -> None:
    world = shared_world()
    world.put_queue(a_queue("vision", onvif=(0, 4)))
    world.put_pod(a_pod("a", queue="vision", claims=("cam",), node="n", phase="Running"))
    world.report_unmet({QueueName("robots"): "Nobody can go."})

    told = await figures(world)

    assert told["queue_reclaimable{onvif,vision}"] == 1
    assert told["queue_reclaimable{onvif,robots}"] == 0
    assert (told["queue_quota_unmet{robots}"], told["queue_quota_unmet{vision}"]) == (1, 0)


async def test_whether_it_serves_and_what_it_does_not_hear_of_is_told() -> None:
    told = await figures(a_world())

    assert (told["serving{}"], told["watch_failures{missing-right,pods of v1}"]) == (0, 2)


async def test_of_too_many_queues_the_rest_is_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "MOST_ROWS", 3)
    world = a_world(*(a_queue(f"q{number}", onvif=(1, 1)) for number in range(5)))

    told = await figures(world)

    assert sum(name.startswith("queue_usage{") for name in told) == 3
    assert told["queue_rows_left_out{}"] == 2


async def test_others_have_their_turn_while_many_queues_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "IN_ONE_STEP", 1)
    world = a_world(*(a_queue(f"q{number}", onvif=(1, 1)) for number in range(20)))
    reading, turns = asyncio.create_task(figures(world)), 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)

    assert turns >= 20


async def test_no_step_looks_at_or_writes_more_than_others_can_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A queue that lists many classes is as much work as many queues."""
    monkeypatch.setattr(prometheus, "IN_ONE_STEP", 10)
    classes = {f"class-{number}": (1, 1) for number in range(500)}
    work = counting_work(monkeypatch)
    reading, steps = asyncio.create_task(figures(a_world(a_queue("large", **classes)))), list[int]()
    while not reading.done():
        work.clear()
        await asyncio.sleep(0)
        steps.append(len(work))

    assert sum(steps) >= 2 * 8 * 500
    assert max(steps) <= 500
    assert (await reading)["queue_usage{class-499,large}"] == 0


def counting_work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An entry for each sample that is found, and for each that is written."""
    work: list[str] = []
    add, write = GaugeMetricFamily.add_metric, generate_latest

    def adding(family: GaugeMetricFamily, *of: Any, **more: Any) -> None:
        work.append(family.name)
        add(family, *of, **more)

    def writing(registry: Any) -> bytes:
        work.extend(sample.name for family in registry.collect() for sample in family.samples)
        return write(registry)

    monkeypatch.setattr(GaugeMetricFamily, "add_metric", adding)
    monkeypatch.setattr(prometheus, "generate_latest", writing)
    return work


async def test_answers_are_counted_by_reason_and_measured_by_verb() -> None:
    before = await figures(a_world())
    prometheus_calls.note_verdict("filter", Passed())
    prometheus_calls.note_verdict("filter", Refused(Reason.OVER_LIMIT, "No."))
    prometheus_calls.note_verdict("preempt", NotAnswered("Later."))
    prometheus_calls.note_bind("")
    prometheus_calls.note_bind("No.")
    prometheus_calls.note_call("/bind", 0.003)
    after = await figures(a_world())

    def more(name: str) -> float:
        return after[name] - before.get(name, 0)

    for name in (
        "verdicts_total{Admitted,filter}",
        "verdicts_total{OverLimit,filter}",
        "verdicts_total{NotAnswered,preempt}",
        "binds_total{bound}",
        "binds_total{not_bound}",
        "call_duration_seconds_count{bind}",
        "call_duration_seconds_bucket{0.005,bind}",
    ):
        assert more(name) == 1
    assert more("call_duration_seconds_bucket{0.002,bind}") == 0


async def test_evictions_are_counted_by_cause_once_for_each_pod() -> None:
    before, heard = await figures(a_world()), list[Event]()
    record = counting_evictions(heard.append)
    for kind, reason in (
        ("Pod", "Reclaimed"),
        ("ResourceClaim", "Reclaimed"),
        ("Pod", "ForeignPodEvicted"),
        ("Pod", "PodGroupGivenUp"),
        ("Pod", "Else"),
    ):
        regarding = ObjectReference(
            api_version="v1", kind=kind, name="x", namespace="default", uid="u"
        )
        event = Event(
            regarding=regarding, type=EventType.NORMAL, reason=reason, action="Evict", note="."
        )
        record(event)
    after = await figures(a_world())

    assert len(heard) == 5
    for cause in ("reclaim", "foreign", "gang"):
        name = f"evictions_total{{{cause}}}"
        assert after[name] - before.get(name, 0) == 1
