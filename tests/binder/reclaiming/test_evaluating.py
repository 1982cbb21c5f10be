"""Evaluating what is missing: a few devices at a time, for one request after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from binder.reclaiming import answers_processes
from binder.reclaiming.answers_processes import SelectorEvaluator
from driver.api import DRIVER_NAME
from kube.cel import processes
from kube.cel.api import CelProcess, NotEvaluatedError, TooSlowError, digest_of
from scheduler_plugin.reclaiming.api import Answers, DeviceCriteria, OfferedDevices
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from tests.scheduler_plugin.reclaiming.devices_builders import a_device, a_slice_object

CLASS, FINE = ("a class",), ("device.attributes['moorage.dev'].model == 'fine'",)
SLOW, FAILS = ("slow",), ("fails",)
MODELS = ["plain", "fine", "rare"]


class FakeCelProcess(CelProcess):
    """Accepts devices whose model is `fine`, of a class all but the rare; takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Sequence[str], list[str]]] = []

    async def matches(
        self, expressions: Sequence[str], devices: Sequence[Mapping[str, Any]]
    ) -> list[bool | None]:
        models = [device["attributes"]["moorage.dev"]["model"] for device in devices]
        self.asked.append((tuple(expressions), models))
        await asyncio.sleep(0)
        if expressions == SLOW:
            raise TooSlowError
        if expressions == FAILS:
            raise NotEvaluatedError
        return [model != "rare" if expressions == CLASS else model == "fine" for model in models]


class Scene:
    """A device of each model on each of some nodes."""

    def __init__(
        self, *, nodes: int = 1, seconds: float = 60.0, cel: CelProcess | None = None
    ) -> None:
        self.devices, self.answers = OfferedDevices(), Answers()
        self.fake = FakeCelProcess()
        self.evaluator = SelectorEvaluator(cel or self.fake, self.devices, self.answers, seconds)
        for number in range(nodes):
            bodies = [a_device(model, model=model) for model in MODELS]
            found = a_slice_object(*bodies, node=f"n{number}")
            self.devices.put_slice(published_slice({"metadata": {"name": f"s{number}"}, **found}))

    async def evaluate(
        self, *requests: DeviceCriteria, reported: Sequence[str] = ()
    ) -> list[frozenset[str]]:
        everything = self.devices.of_driver(DRIVER_NAME)
        found = [await self.evaluator.evaluate(each, everything, reported) for each in requests]
        return [each.too_slow for each in found]

    def accepted(self, criteria: DeviceCriteria) -> list[str]:
        """Names of devices that may fit."""
        found = map(self.devices.offer, self.devices.of_driver(DRIVER_NAME))
        offers = [offer for offer in found if offer is not None]
        return [each.device.name for each in offers if self.answers.accepts(criteria, each)]


def a_request(*selectors: tuple[str | None, ...]) -> DeviceCriteria:
    return DeviceCriteria(selectors=selectors, slots=1, names_slots=False, tolerations=())


async def test_a_request_is_evaluated_for_what_its_class_does_not_refuse_and_once() -> None:
    scene, criteria = Scene(nodes=3), a_request(CLASS, FINE)

    assert await scene.evaluate(criteria) == [frozenset()]

    assert scene.fake.asked == [(CLASS, MODELS), (FINE, ["plain", "fine"])]
    assert scene.accepted(criteria) == ["fine"] * 3
    await scene.evaluate(criteria)
    assert len(scene.fake.asked) == 2


async def test_no_call_is_about_more_devices_than_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers_processes, "IN_ONE_CALL", 2)
    scene, criteria = Scene(), a_request(FINE)

    await scene.evaluate(criteria)

    assert scene.fake.asked == [(FINE, ["plain", "fine"]), (FINE, ["rare"])]


async def test_what_takes_too_long_is_told_and_not_evaluated_again() -> None:
    scene, criteria, plain = Scene(), a_request(CLASS, SLOW), a_request(CLASS, FINE)

    found = await scene.evaluate(criteria, plain)

    assert found == [{digest_of(SLOW)}, frozenset()]
    assert scene.accepted(criteria) == ["plain", "fine"]
    asked = len(scene.fake.asked)
    assert await scene.evaluate(criteria, plain) == found
    assert len(scene.fake.asked) == asked


async def test_what_pods_say_of_expressions_is_believed_of_their_requests_alone() -> None:
    scene, criteria = Scene(), a_request(CLASS, FINE)

    found = await scene.evaluate(criteria, reported=[digest_of(FINE)])

    assert found == [{digest_of(FINE)}]
    assert scene.accepted(criteria) == ["plain", "fine"]
    assert await scene.evaluate(criteria) == [frozenset()]
    assert scene.accepted(criteria) == ["fine"]


async def test_what_is_not_evaluated_in_time_may_fit_and_is_evaluated_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers_processes, "IN_ONE_CALL", 1)
    scene, criteria = Scene(seconds=0.0), a_request(FINE)

    everything = scene.devices.of_driver(DRIVER_NAME)
    assert not (await scene.evaluator.evaluate(criteria, everything)).is_complete
    assert scene.accepted(criteria) == ["fine", "rare"]

    scene.evaluator = SelectorEvaluator(scene.fake, scene.devices, scene.answers)
    assert (await scene.evaluator.evaluate(criteria, everything)).is_complete
    assert scene.accepted(criteria) == ["fine"]
    assert [models for _, models in scene.fake.asked] == [["plain"], ["fine"], ["rare"]]


async def test_where_nothing_can_be_evaluated_what_was_answered_is_kept() -> None:
    scene, criteria = Scene(), a_request(CLASS, FAILS)

    with pytest.raises(NotEvaluatedError):
        await scene.evaluate(criteria)

    assert scene.accepted(criteria) == ["plain", "fine"]


async def test_others_go_on_though_everything_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_processes, "IN_ONE_CALL", 1)
    scene, criteria, turns = Scene(), a_request(FINE), 0
    await scene.evaluate(criteria)

    task = asyncio.ensure_future(scene.evaluate(criteria))
    while not task.done():
        turns += 1
        await asyncio.sleep(0)

    assert turns >= 3


async def test_devices_that_go_meanwhile_are_left_out() -> None:
    scene, criteria = Scene(nodes=2), a_request(FINE)
    everything = scene.devices.of_driver(DRIVER_NAME)
    scene.devices.delete_slice("s0")
    scene.devices.delete_slice("s1")

    await scene.evaluator.evaluate(criteria, everything)

    assert scene.fake.asked == []


async def test_the_process_evaluates_what_devices_say_of_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "WAIT_SECONDS", 600.0)
    cel = CelProcess()
    scene, by_class = Scene(nodes=2, cel=cel), (f"device.driver == '{DRIVER_NAME}'",)
    criteria, broken = a_request(by_class, FINE), a_request(("no such language",))

    assert await scene.evaluate(criteria, broken) == [frozenset(), frozenset()]
    await cel.close()

    assert scene.accepted(criteria) == ["fine"] * 2
    assert scene.accepted(broken) == MODELS * 2
    assert cel.started == 1
