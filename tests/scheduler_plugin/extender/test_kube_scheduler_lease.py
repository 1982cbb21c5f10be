"""The Lease is read, the stores are asked, and writes are let through or not.

The times are short; what decides is tested in test_leadership.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from kube.calls.api import ApiClient, ApiError, NotFoundError, UnavailableError
from scheduler_plugin.extender.kube_scheduler_lease import KubeSchedulerLease, LeaseSettings

SETTINGS = LeaseSettings(
    namespace="moorage-system", name="moorage-scheduler", identity="host-a", period_seconds=0.02
)


@dataclass
class FakeLeases:
    """An API server that has one Lease, which each read finds renewed."""

    holder: str = "host-a_1"
    transitions: int = 0
    seconds: float = 5.0
    acquired: str = ""
    error: ApiError | None = None
    is_renewed: bool = True
    reads: int = 0

    async def get(self, _: object, *, timeout_seconds: float) -> dict[str, Any]:
        self.reads += 1
        if self.error:
            raise self.error
        renewed = self.reads if self.is_renewed else 0
        spec = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.seconds,
            "leaseTransitions": self.transitions,
            "acquireTime": self.acquired or an_hour_ago(),
            "renewTime": str(renewed),
        }
        return {"spec": spec}


def an_hour_ago() -> str:
    return (datetime.now(UTC) - timedelta(hours=1)).isoformat()


@dataclass
class FakeStores:
    """Stores that are as new as they are asked to be, once they may."""

    moments: list[float] = field(default_factory=list)
    answers: list[bool | ApiError] = field(default_factory=list)
    may: asyncio.Event = field(default_factory=asyncio.Event)

    async def catch_up(self, moment: float, timeout_seconds: float) -> bool:
        self.moments.append(moment)
        await self.may.wait()
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, ApiError):
            raise answer
        return answer


@asynccontextmanager
async def following(
    api: FakeLeases, stores: FakeStores, settings: LeaseSettings = SETTINGS
) -> AsyncIterator[KubeSchedulerLease]:
    lease = KubeSchedulerLease(cast(ApiClient, api), settings, stores.catch_up)
    task = asyncio.create_task(lease.run())
    try:
        yield lease
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(lease: KubeSchedulerLease, words: str) -> None:
    """Wait until the Lease says this; "" for nothing that keeps a write back."""

    def says() -> bool:
        said = lease.why_not(0)
        return words in said if words else not said

    async with asyncio.timeout(10):
        while not says():  # noqa: ASYNC110  There is nobody to wake this.
            await asyncio.sleep(0.005)


@pytest.fixture
def api() -> FakeLeases:
    return FakeLeases()


@pytest.fixture
async def stores() -> FakeStores:
    found = FakeStores()
    found.may.set()
    return found


async def test_before_anything_was_read_nothing_may_be_written(
    api: FakeLeases, stores: FakeStores
) -> None:
    lease = KubeSchedulerLease(cast(ApiClient, api), SETTINGS, stores.catch_up)

    assert "Lease moorage-system/moorage-scheduler has no holder" in lease.why_not(0)


async def test_holder_beside_us_is_served_when_the_stores_are_there(
    api: FakeLeases, stores: FakeStores, caplog: pytest.LogCaptureFixture
) -> None:
    stores.may.clear()
    caplog.set_level("INFO")
    async with following(api, stores) as lease:
        await until(lease, "not read yet")
        assert lease.why_not_ready()
        stores.may.set()
        await until(lease, "")

        assert lease.why_not_ready() == ""
        assert "too short for a write of 10 s" in lease.why_not(10)
    assert "serving holder=host-a_1" in caplog.text


async def test_stores_that_fail_to_catch_up_are_asked_again(
    api: FakeLeases, stores: FakeStores
) -> None:
    stores.answers = [UnavailableError("away"), False]
    async with following(api, stores) as lease:
        await until(lease, "")

    assert len(stores.moments) == 3


async def test_lease_that_is_not_renewed_is_never_relied_on(
    api: FakeLeases, stores: FakeStores
) -> None:
    """It may be a leftover of a kube-scheduler that died before this process began."""
    api.is_renewed = False
    async with following(api, stores) as lease:
        await until(lease, "certainly held for 0.0 s")


async def test_api_server_that_is_away_lets_the_lease_run_out(
    api: FakeLeases, stores: FakeStores
) -> None:
    api.seconds = 0.5
    async with following(api, stores) as lease:
        await until(lease, "")
        api.error = UnavailableError("away")
        await until(lease, "certainly held for 0.0 s")
        api.error = None
        await until(lease, "")


async def test_takeover_by_another_ends_it_at_once_and_its_end_is_waited_for(
    api: FakeLeases, stores: FakeStores
) -> None:
    api.seconds = 0.5
    async with following(api, stores) as lease:
        await until(lease, "")
        asked = len(stores.moments)
        api.holder, api.transitions = "host-b_1", 1
        await until(lease, '"host-b_1" holds')

        api.holder, api.transitions = "host-a_2", 2
        await until(lease, "may still write")
        await until(lease, "")

    (moment,) = stores.moments[asked:]
    assert moment > 0


SELDOM = replace(SETTINGS, period_seconds=60.0)


@pytest.mark.parametrize(("seconds", "is_said"), [(7.9, True), (8.0, False)])
async def test_lease_that_is_too_short_for_some_writes_is_said(
    api: FakeLeases,
    stores: FakeStores,
    caplog: pytest.LogCaptureFixture,
    *,
    seconds: float,
    is_said: bool,
) -> None:
    api.seconds = seconds
    async with following(api, stores) as lease:
        await until(lease, "")

    assert ("Lease too short" in caplog.text) == is_said


async def test_who_asks_has_the_lease_read_at_once_and_when_anothers_time_ends(
    api: FakeLeases, stores: FakeStores
) -> None:
    api.seconds, api.holder = 0.5, "host-b_1"
    async with following(api, stores, SELDOM) as lease:
        await until(lease, '"host-b_1" holds')
        api.holder, api.transitions = "host-a_1", 1

        await lease.await_lease(0.01)

        await until(lease, "may still write")
        await until(lease, "certainly held")


async def test_who_asks_is_answered_as_soon_as_he_is_served(
    api: FakeLeases, stores: FakeStores
) -> None:
    stores.may.clear()
    async with following(api, stores) as lease:
        await until(lease, "not read yet")
        waits = asyncio.create_task(lease.await_lease(10))
        stores.may.set()

        await waits

        assert lease.why_not_ready() == ""


async def test_who_asks_waits_for_so_long_and_no_longer(
    api: FakeLeases, stores: FakeStores
) -> None:
    api.holder = "host-b_1"
    async with following(api, stores, SELDOM) as lease:
        await lease.await_lease(0.05)

        assert '"host-b_1" holds' in lease.why_not_ready()


@pytest.mark.parametrize("error", [NotFoundError("no Lease"), None])
async def test_no_lease_and_nobodys_lease_say_what_must_be_on(
    api: FakeLeases, stores: FakeStores, error: ApiError | None
) -> None:
    api.error, api.holder = error, ""
    async with following(api, stores) as lease:
        async with asyncio.timeout(10):
            while api.reads < 3:  # noqa: ASYNC110  There is nobody to wake this.
                await asyncio.sleep(0.005)

        assert "turn leader election on" in lease.why_not_ready()
