"""The DeviceTaintRules of a cluster that may serve them in either version, later, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from driver.device_plugin.slots import apiserver_taint_rules
from driver.device_plugin.slots.apiserver_taint_rules import TaintRules
from kube.calls.api import connect
from tests.driver.tasks import running, until
from tests.fakes.scripted_apiserver import (
    FakeScript,
    event,
    hangs,
    lists,
    refuses,
    scripted,
    serving,
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
        assert list(rules.rules) == []

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


class FakeVersions:
    """An API server that serves the rules in some versions, which an upgrade changes.

    Attributes:
        asked: The versions of all requests, in order.
    """

    def __init__(self, *version_and_rule: str) -> None:
        self.asked: list[str] = []
        self._upgraded = asyncio.Event()
        self._upgrades = 0
        self.upgrade(*version_and_rule)

    def upgrade(self, *version_and_rule: str) -> None:
        """Serve one version with one rule; without arguments, none."""
        self._served = version_and_rule[:1]
        self._rules = [a_rule_object(name) for name in version_and_rule[1:]]
        self._upgrades += 1
        self._upgraded.set()
        self._upgraded = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/readyz":
            return await READY(request)
        version = request.path.split("/")[3]
        self.asked.append(version)
        if version in self._served and "watch" in request.query:
            await self._upgraded.wait()
        if version not in self._served:
            return await NOT_SERVED(request)
        return await lists(*self._rules, version=10 * self._upgrades)(request)

    @asynccontextmanager
    async def followed(self, folder: Path) -> AsyncIterator[TaintRules]:
        async with serving(self.answer, folder) as config, connect(config) as client:
            rules = TaintRules(client, lambda: None)
            async with running(rules.run()):
                yield rules


def names(rules: TaintRules) -> list[str]:
    return [rule.name for rule in rules.rules]


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver_taint_rules, "LOST_SECONDS", 0.05)
    monkeypatch.setattr(apiserver_taint_rules, "PROBE_SECONDS", 0.05)


@pytest.mark.usefixtures("_soon")
async def test_a_version_that_an_upgrade_ends_is_followed_in_the_next_one(tmp_path: Path) -> None:
    """Kubernetes 1.36 with v1beta2 on is upgraded to 1.37, which serves v1 alone."""
    server = FakeVersions("v1beta2", "a")
    async with server.followed(tmp_path) as rules:
        await until(lambda: names(rules) == ["a"])

        server.upgrade("v1", "b")

        await until(lambda: names(rules) == ["b"])


@pytest.mark.usefixtures("_soon")
async def test_rules_of_a_kind_that_is_not_served_any_more_are_forgotten(tmp_path: Path) -> None:
    server = FakeVersions("v1", "a")
    async with server.followed(tmp_path) as rules:
        await until(lambda: names(rules) == ["a"])

        server.upgrade()

        await until(lambda: names(rules) == [])


async def test_rules_hold_while_the_kind_was_missing_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several API servers, the one that answered may not be upgraded yet."""
    monkeypatch.setattr(apiserver_taint_rules, "LOST_SECONDS", 0.05)
    server = FakeVersions("v1", "a")
    async with server.followed(tmp_path) as rules:
        await until(lambda: names(rules) == ["a"])

        server.upgrade()
        await until(lambda: server.asked[-1:] == ["v1beta2"])
        await asyncio.sleep(0.1)

        assert names(rules) == ["a"]


async def test_the_status_of_a_rule_changes_nothing(tmp_path: Path) -> None:
    """kube-controller-manager writes into it while it evicts."""
    status = {"conditions": [{"type": "EvictionInProgress", "status": "True"}]}
    evicting = {**versioned("a", 4), "status": status}
    told: list[int] = []
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        events = event("MODIFIED", evicting), event("ADDED", versioned("b", 5))
        fake.will(EMPTY, lists(versioned("a", 2), version=3), streams(*events, then=hangs))
        rules = TaintRules(client, lambda: told.append(len(rules.rules)))
        async with running(rules.run()):
            await until(lambda: names(rules) == ["a", "b"])

    assert told == [1, 1, 2], "known, the first of the list, and the second"


def versioned(name: str, version: int) -> dict[str, Any]:
    rule = a_rule_object(name)
    return {**rule, "metadata": {**rule["metadata"], "resourceVersion": str(version)}}


async def test_thousands_of_rules_are_sorted_once_when_they_are_read(tmp_path: Path) -> None:
    there = [a_rule_object(f"rule-{number}") for number in range(2_000)]
    async with followed(tmp_path) as (fake, rules, _):
        fake.will(EMPTY, lists(*there, version=3), streams(then=hangs))
        await rules.settled.wait()

        assert len(rules.rules) == len(there)
        assert rules.rules is rules.rules
