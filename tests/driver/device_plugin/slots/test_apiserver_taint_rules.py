"""The DeviceTaintRules of a cluster that may serve them in either version, later, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from driver.device_plugin.slots import apiserver_taint_rules
from driver.device_plugin.slots.apiserver_taint_rules import TaintRules
from kube.calls.api import connect
from tests.fakes.scripted_apiserver import (
    FakeScript,
    event,
    hangs,
    lists,
    refuses,
    scripted,
    streams,
)
from tests.fakes.taint_rules import a_rule_object

EMPTY = lists(version=1)
NOT_SERVED = refuses(404, "NotFound")
READY = refuses(403, "Forbidden")
"""Of `/readyz`, which the driver may not read: then the list alone decides."""

ABSENT = (NOT_SERVED, READY, NOT_SERVED)


@asynccontextmanager
async def followed(folder: Path) -> AsyncIterator[tuple[FakeScript, TaintRules, asyncio.Event]]:
    async with scripted(folder) as fake, connect(fake.kubeconfig) as client:
        changed = asyncio.Event()
        rules = TaintRules(client, changed.set)
        task = asyncio.create_task(rules.run())
        try:
            async with asyncio.timeout(10):
                yield fake, rules, changed
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_rules_with_an_effect_are_known_and_change(tmp_path: Path) -> None:
    there = [a_rule_object("b"), a_rule_object("a"), a_rule_object("c", "None")]
    gone = event(
        "DELETED",
        {
            **a_rule_object("a"),
            "metadata": {"name": "a", "uid": "uid-of-a", "resourceVersion": "4"},
        },
    )
    async with followed(tmp_path) as (fake, rules, changed):
        fake.will(EMPTY, lists(*there, version=3), streams(gone, then=hangs))
        await rules.settled.wait()
        while [rule.name for rule in rules.rules] != ["b"]:
            changed.clear()
            await changed.wait()


async def test_of_two_versions_the_one_that_is_served_is_watched(tmp_path: Path) -> None:
    async with followed(tmp_path) as (fake, rules, _):
        fake.will(*ABSENT, EMPTY, lists(a_rule_object("a"), version=3), streams(then=hangs))
        await rules.settled.wait()

        assert [rule.name for rule in rules.rules] == ["a"]
        assert fake.seen[-1].path == "/apis/resource.k8s.io/v1beta2/devicetaintrules"


@pytest.mark.parametrize("refusal", [(*ABSENT, *ABSENT), (refuses(403, "Forbidden"),)])
async def test_where_they_are_not_served_or_may_not_be_read_there_are_none(
    refusal: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until they are: an upgrade may bring them, or the right."""
    monkeypatch.setattr(apiserver_taint_rules, "PROBE_SECONDS", 0.05)
    async with followed(tmp_path) as (fake, rules, changed):
        fake.will(*refusal)  # type: ignore[arg-type]
        await rules.settled.wait()
        assert rules.rules == ()

        fake.will(EMPTY, lists(a_rule_object("a"), version=3), streams(then=hangs))
        await changed.wait()


async def test_an_api_server_that_fails_is_asked_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile nothing is settled: a slot that a rule withholds must not be given at a start."""
    monkeypatch.setattr(apiserver_taint_rules, "RETRY_SECONDS", 0.05)
    async with followed(tmp_path) as (fake, rules, _):
        fake.will(refuses(500), refuses(500))
        await fake.has_seen(2)
        assert not rules.settled.is_set()

        fake.will(EMPTY, lists(version=3))
        await rules.settled.wait()
