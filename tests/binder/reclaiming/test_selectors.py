"""CEL of tenants that takes too long: it holds up nobody, and counts as satisfied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from binder.reclaiming import apiserver_placements, apiserver_reclaims
from kube.cel import processes
from kube.cel.api import CelProcess, NotEvaluatedError, digest_of
from kube.kinds import CLAIMS
from kube.objects import JsonObject
from tests.binder.reclaiming.test_reclaiming_devices import DeviceScene
from tests.fakes.apiserver import RefusedError
from tests.fakes.claim_server import FakeClaimServer
from tests.scheduler_plugin.builders import a_claim_object, a_queue, a_request, our_class, put
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    a_device,
)

HUNDRED = f"[{','.join('1' for _ in range(100))}]"
NESTED = f"{HUNDRED}.map(a, {HUNDRED}.map(b, {HUNDRED}.map(c, true))).size() == 0"
"""633 characters and less, which the API server admits: 13 s for each device."""

PLAIN = "device.attributes['moorage.dev'].model == 'plain'"
FINE = "device.attributes['moorage.dev'].model == 'fine'"


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver_reclaims, "TICK_SECONDS", 0.0)
    monkeypatch.setattr(processes, "WAIT_SECONDS", 600.0)


class SelectorScene(DeviceScene):
    """The pod that waits asks for a device by CEL."""

    def __init__(self, *expressions: str, server: FakeClaimServer | None = None) -> None:
        super().__init__(server=server)
        self.select(*expressions)

    def select(self, *expressions: str, name: str = "w") -> None:
        selectors = [{"cel": {"expression": text}} for text in expressions]
        requests = [a_request(selectors=selectors)]
        self.server.put(CLAIMS, a_claim_object(name, requests=requests))
        self.note_claim(self.server.claim(name))

    def tell(self, name: str, condition: JsonObject) -> None:
        self.server.pod(name)["status"].setdefault("conditions", []).append(condition)
        self.note_pod(self.server.pod(name))

    def slow(self, name: str = "w") -> JsonObject | None:
        conditions = self.server.pod(name)["status"].get("conditions", ())
        found = [c for c in conditions if c["type"] == "moorage.dev/SelectorsTooSlow"]
        return found[0] if found else None

    async def until(self, holds: Callable[[], Any]) -> int:
        """Wait for it; how often others had their turn meanwhile."""
        turns = 0
        async with asyncio.timeout(600):
            while not holds():
                await asyncio.sleep(0)
                turns += 1
        return turns


class OlderPolicy(FakeClaimServer):
    """It has the policy of the version before, which does not know the condition."""

    def _patch_status(self, path: str, patch: Mapping[str, Any], kind: str) -> dict[str, Any]:
        if "SelectorsTooSlow" in str(patch):
            raise RefusedError(403, "Forbidden", "It may write its own conditions only.")
        return super()._patch_status(path, patch, kind)


class CountingCel(CelProcess):
    """Remembers what it was asked, over restarts of the reclaimer."""

    asked: ClassVar[list[Sequence[str]]] = []

    async def matches(
        self, expressions: Sequence[str], devices: Sequence[Mapping[str, Any]]
    ) -> list[bool | None]:
        self.asked.append(list(expressions))
        return await super().matches(expressions, devices)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """What was to be evaluated."""
    monkeypatch.setattr(apiserver_placements, "CelProcess", CountingCel)
    monkeypatch.setattr(CountingCel, "asked", [])
    return CountingCel.asked


async def test_a_selector_that_takes_too_long_holds_up_nobody_and_counts_as_satisfied() -> None:
    scene = SelectorScene(NESTED)

    async with scene.running():
        turns = await scene.until(lambda: scene.evicted)

    assert scene.evicted == ["r1"]
    assert turns > 100, "the loop goes on while it is evaluated"
    assert scene.slow() == {
        "type": "moorage.dev/SelectorsTooSlow",
        "status": "True",
        "reason": "NotEvaluated",
        "message": "Evaluating the CEL selectors of its claims takes too long. They count as"
        " satisfied where devices are taken back for this pod. Their digests:"
        f" {digest_of([NESTED])}.",
    }


async def test_the_next_to_lead_goes_by_what_the_pod_says(asked: list[Sequence[str]]) -> None:
    scene = SelectorScene(NESTED)
    message = f"It takes too long. Their digests: {digest_of([NESTED])}."
    fields = {"type": "moorage.dev/SelectorsTooSlow", "status": "True", "message": message}
    scene.tell("w", fields)

    async with scene.running():
        await scene.until(lambda: scene.evicted)

    assert (scene.evicted, asked) == (["r1"], [])
    assert scene.slow() == fields, "it is not written again"


@pytest.mark.parametrize("status", ["True", "False"])
async def test_what_a_pod_says_is_true_of_no_other(status: str, asked: list[Sequence[str]]) -> None:
    scene = SelectorScene(FINE)
    message = digest_of([FINE])
    fields = {"type": "moorage.dev/SelectorsTooSlow", "status": status, "message": message}
    if status == "True":
        scene.put_claim("w2")
        scene.put_pod("w2", "mine")
        scene.tell("w2", fields)
    else:
        scene.tell("w", fields)

    async with scene.running():
        await scene.until(lambda: asked)
        await scene.until(lambda: scene.world.unmet)

    assert (scene.evicted, asked) == ([], [[FINE]])


async def test_alike_pods_are_told_and_nothing_is_evaluated_for_them(
    asked: list[Sequence[str]],
) -> None:
    scene = SelectorScene(NESTED)
    put(scene.world, a_queue("mine", parent="root", onvif=(2, -1)))
    scene.use_device("r2", "d2")
    scene.offer("d1", "d2")
    scene.select(NESTED, name="w2")
    scene.put_pod("w2", "mine", status=UNSCHEDULABLE)

    async with scene.running():
        await scene.until(lambda: scene.slow("w") and scene.slow("w2"))

    assert asked == [[NESTED]]


async def test_what_the_class_refuses_stays_refused_where_the_requests_own_takes_too_long() -> None:
    scene = SelectorScene(NESTED)
    selectors = [{"cel": {"expression": FINE}}]
    put(scene.world, our_class("onvif", spec={"selectors": selectors}))
    scene.offer("d1", a_device("d2", model="fine"))
    scene.use_device("r2", "d2")

    async with scene.running():
        await scene.until(lambda: scene.evicted)

    assert scene.evicted == ["r2"]


async def test_where_nothing_can_be_evaluated_nobody_goes_and_it_is_looked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = SelectorScene(PLAIN)

    async def fail(*_: object) -> None:
        raise NotEvaluatedError("no process for CEL can be started")

    with monkeypatch.context() as patch:
        patch.setattr(CelProcess, "matches", fail)
        async with scene.running():
            await scene.rounds()
    assert (scene.evicted, scene.slow()) == ([], None)

    async with scene.running():
        await scene.until(lambda: scene.evicted)
    assert scene.evicted == ["r1"]


async def test_what_cannot_be_written_on_the_pod_keeps_nothing_from_it() -> None:
    scene = SelectorScene(NESTED, server=OlderPolicy())

    async with scene.running():
        await scene.until(lambda: scene.evicted)

    assert (scene.evicted, scene.slow()) == (["r1"], None)
