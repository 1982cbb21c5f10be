"""The writes of a pool: some at once, and no others after one that failed."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from driver.plumbing.apiserver import WRITES_AT_ONCE
from driver.publishing.apiserver_slices import probe_features, write_pool
from driver.publishing.apply.pools import PoolPlan, plan_pool
from driver.publishing.desired.slices import Features
from kube.calls.api import ApiClient, InvalidError, UnavailableError, WriteOptions
from kube.objects import JsonObject
from kube.resources import Resource
from tests.driver.builders import NODE
from tests.driver.publishing.apply.test_pools import a_pool, many
from tests.fakes.slices import FakeSliceServer


class FakeSlowServer(FakeSliceServer):
    """Counts what is under way; is away where a test says so."""

    def __init__(self, *, is_away: bool = False) -> None:
        super().__init__()
        self.is_away = is_away
        self.asked = self.under_way = self.most = 0

    async def create(self, resource: Resource, body: JsonObject) -> JsonObject:
        self.asked += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.is_away:
            raise UnavailableError("away")
        return await super().create(resource, body)


def a_plan(slices: int) -> PoolPlan:
    plan = plan_pool(a_pool(*many(64 * slices)), ())
    assert len(plan.creates) == slices
    return plan


async def test_slices_are_written_some_at_once_and_all_are_noted() -> None:
    server, noted = FakeSlowServer(), list[Any]()

    await write_pool(cast(ApiClient, server), a_plan(20), {}, noted.append)

    assert 1 < server.most <= WRITES_AT_ONCE
    assert len(noted) == len(server.objects) == 20


async def test_an_api_server_that_is_away_is_not_asked_for_each_slice() -> None:
    server, noted = FakeSlowServer(is_away=True), list[Any]()

    with pytest.raises(UnavailableError):
        await write_pool(cast(ApiClient, server), a_plan(40), {}, noted.append)

    assert server.asked <= WRITES_AT_ONCE
    assert noted == []


class FakeStrictServer:
    """Wants the counter sets that devices consume of in their own slice, as 1.34 could."""

    async def create(
        self, resource: Resource, body: JsonObject, *, options: WriteOptions
    ) -> JsonObject:
        assert options.dry_run
        if any("consumesCounters" in device for device in body["spec"]["devices"]):
            raise InvalidError("counter set not found")
        return body


class FakeFeatures:
    """Keeps what devices say of their nodes, or drops it before it validates."""

    def __init__(self, *, is_kept: bool, is_refused: bool = True) -> None:
        self.is_kept = is_kept
        self.is_refused = is_refused

    async def create(
        self, resource: Resource, body: JsonObject, *, options: WriteOptions
    ) -> JsonObject:
        assert options.dry_run
        spec = body["spec"]
        if self.is_kept or "perDeviceNodeSelection" not in spec:
            return body
        if self.is_refused:
            raise InvalidError("exactly one of nodeName, nodeSelector, allNodes is required")
        return {**body, "spec": {**spec, "perDeviceNodeSelection": None}}


@pytest.mark.parametrize(
    ("server", "kept"),
    [
        (FakeFeatures(is_kept=True), True),
        (FakeFeatures(is_kept=False), False),
        (FakeFeatures(is_kept=False, is_refused=False), False),
    ],
)
async def test_devices_of_several_nodes_say_whose_they_are_where_that_is_kept(
    server: FakeFeatures, kept: bool
) -> None:
    shared = await probe_features(cast(ApiClient, server), None)
    of_a_node = await probe_features(cast(ApiClient, server), NODE)

    assert (shared and shared.device_nodes) is kept
    assert (of_a_node and of_a_node.device_nodes) is False


async def test_counters_that_must_be_with_their_devices_are_none() -> None:
    found = await probe_features(cast(ApiClient, FakeStrictServer()), NODE)

    assert found == Features(consumable_capacity=True, taints=True, counters=False)
