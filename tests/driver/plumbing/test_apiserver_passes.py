"""Passes: as often as asked for, one at a time, again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from driver.plumbing.apiserver_passes import Passes, until_done
from kube.api import ApiError, UnavailableError


@asynccontextmanager
async def running(work: Callable[[], Awaitable[float | None]]) -> AsyncIterator[Passes]:
    made = Passes(work, name="testing")
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.wait([task])


class Work:
    """Counts passes, and fails the first ones if told to."""

    def __init__(
        self,
        *,
        failures: int = 0,
        due: float | None = None,
        error: Exception | None = None,
    ) -> None:
        self.done = 0
        self.at_once = 0
        self._failures = failures
        self._due = due
        self._error = error or UnavailableError("away")
        self._changed = asyncio.Condition()

    async def __call__(self) -> float | None:
        self.at_once += 1
        assert self.at_once == 1
        await asyncio.sleep(0)
        self.at_once -= 1
        async with self._changed:
            self.done += 1
            self._changed.notify_all()
        if self.done <= self._failures:
            raise self._error
        return self._due

    async def wait_done(self, count: int) -> None:
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: self.done >= count)


async def test_the_first_pass_needs_no_asking() -> None:
    work = Work()

    async with running(work):
        await work.wait_done(1)


async def test_many_requests_during_a_pass_cost_one_more() -> None:
    work = Work()
    async with running(work) as made:
        await work.wait_done(1)
        for _ in range(10):
            made.ask()
        await work.wait_done(2)
        await asyncio.sleep(0)

        made.ask()
        await work.wait_done(3)

    assert work.done == 3


@pytest.mark.parametrize("error", [UnavailableError("away"), KeyError("spec")])
async def test_a_failed_pass_is_done_again_without_asking(error: Exception) -> None:
    work = Work(failures=2, error=error)

    async with running(work):
        await work.wait_done(3)


async def test_a_pass_that_is_due_comes_without_asking() -> None:
    work = Work(due=0.01)

    async with running(work):
        await work.wait_done(3)


async def test_what_must_be_done_once_is_tried_until_it_is() -> None:
    failures: list[ApiError] = [UnavailableError("away")] * 2

    async def work() -> None:
        if failures:
            raise failures.pop()

    await until_done(work, name="testing")

    assert failures == []


async def test_what_may_wait_costs_one_pass_when_its_time_has_come() -> None:
    work = Work()
    async with running(work) as made:
        await work.wait_done(1)
        for _ in range(100):
            made.ask_within(0.05)
        await asyncio.sleep(0.02)
        before = work.done

        await work.wait_done(2)
        await asyncio.sleep(0.1)

    assert before == 1
    assert work.done == 2


@pytest.mark.parametrize("steps", range(6))
async def test_a_request_does_not_keep_it_from_being_cancelled(steps: int) -> None:
    made = Passes(Work(due=60.0), name="testing")
    task = asyncio.create_task(made.run())
    await asyncio.sleep(0.01)

    made.ask()
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()

    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


async def test_of_several_requests_for_later_the_soonest_counts() -> None:
    work = Work()
    async with running(work) as made:
        await work.wait_done(1)

        made.ask_within(1000)
        made.ask_within(0.01)
        made.ask_within(2000)

        await work.wait_done(2)
