"""Owners end on a real API server, removed as the binder's account."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from binder.api import Binder, ClaimController
from kube.calls.api import ApiClient
from kube.objects import JsonObject
from scheduler_plugin.accounting.api import World
from scheduler_plugin.cleanup.api import ClaimCleanup
from scheduler_plugin.objects.api import ClaimView, PodView, claim_view, pod_view
from scheduler_plugin.objects.names import AccountingSettings
from tests.e2e.binder.test_binds import a_binder
from tests.e2e.binder.world import QUEUE, Stage, new_stage, owner_of, uid_of
from tests.fakes.fence import FakeFence

SETTINGS = AccountingSettings()


def know(world: World, *, claim: JsonObject | None = None, pod: JsonObject | None = None) -> None:
    """What the plugin's stores do with what the API server sends."""
    if claim:
        seen = claim_view(claim, queue_label=QUEUE)
        assert isinstance(seen, ClaimView)
        world.put_claim(seen)
    if pod:
        view = pod_view(pod, SETTINGS)
        assert isinstance(view, PodView)
        world.put_pod(view)


@asynccontextmanager
async def a_keeper(client: ApiClient, world: World) -> AsyncIterator[ClaimController]:
    binder = Binder(
        client, FakeFence(), queue_label=QUEUE, note_claim=lambda claim: know(world, claim=claim)
    )
    keeper = binder.claim_controller(ClaimCleanup(world), lambda _: None, lambda: datetime.now(UTC))
    task = asyncio.create_task(keeper.run())
    yield keeper
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(45):
        while not await condition():
            pass


async def has_no_owner(stage: Stage) -> bool:
    return owner_of(await stage.claim()) == ("", "")


async def test_an_owner_ends_with_the_allocation(account: ApiClient, admin: ApiClient) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    await stage.allocate(pod)
    await a_binder(account).write_owners(await stage.request(pod))
    world = World(SETTINGS)
    know(world, claim=await stage.claim(), pod=await stage.pod(pod))

    async with a_keeper(account, world) as keeper:
        claim = await stage.allocate()
        assert owner_of(claim) == ("a", uid_of(pod))
        know(world, claim=claim)
        keeper.changed([known.uid for known in world.facts.claims()])
        await until(lambda: has_no_owner(stage))


async def test_an_owner_that_ended_while_nobody_kept_it_ends_at_the_start(
    account: ApiClient, admin: ApiClient
) -> None:
    stage, users = await new_stage(admin), await new_stage(admin, labels={QUEUE: "a"})
    pod = await stage.new_pod()
    await stage.allocate(pod)
    await a_binder(account).write_owners(await stage.request(pod))
    await stage.allocate()
    world = World(SETTINGS)
    for claim in (await users.claim(), await stage.claim()):
        know(world, claim=claim)

    async with a_keeper(account, world):
        await until(lambda: has_no_owner(stage))

    assert owner_of(await users.claim()) == ("a", "")


async def test_an_owner_stays_when_the_claim_is_used_again_before_it_is_removed(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    await stage.allocate(pod)
    await a_binder(account).write_owners(await stage.request(pod))
    world = World(SETTINGS)
    know(world, claim=await stage.allocate())
    await stage.allocate(pod)

    async with a_keeper(account, world):
        later = await new_stage(admin)
        await later.allocate(pod)
        await a_binder(account).write_owners(await later.request(pod))
        know(world, claim=await later.allocate())
        async with a_keeper(account, world):
            await until(lambda: has_no_owner(later))

    assert owner_of(await stage.claim()) == ("a", uid_of(pod))
