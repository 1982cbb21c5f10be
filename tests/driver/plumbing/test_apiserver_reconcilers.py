"""Reconcilers of the driver: they begin without a change, are counted, and answer other writers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from prometheus_client.parser import text_string_to_metric_families

from driver.plumbing import apiserver_reconcilers
from driver.plumbing.apiserver import until_done
from driver.plumbing.apiserver_reconcilers import ALL, put_right, whole_reconciler
from driver.plumbing.prometheus import page
from kube.calls.api import ApiError, UnavailableError
from kube.objects import ObjectKey
from kube.reconciling.api import Done, Reconciler, Result
from kube.stores.api import Deleted, Modified

KEY = ObjectKey("", "slice")


@asynccontextmanager
async def running(
    reconcile: Callable[[], Awaitable[Result]], name: str = "testing"
) -> AsyncIterator[Reconciler[str]]:
    made = whole_reconciler(name, reconcile)
    task = asyncio.ensure_future(made.run())
    try:
        yield made
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110  No event says so.
            await asyncio.sleep(0)


class Calls:
    """Counts calls; the first ones fail where that is asked for."""

    def __init__(self, *errors: Exception) -> None:
        self.made = 0
        self._errors = list(errors)

    async def __call__(self) -> Result:
        self.made += 1
        await asyncio.sleep(0)
        if self._errors:
            raise self._errors.pop(0)
        return Done()


async def test_the_first_call_needs_no_change_and_many_changes_cost_one_more() -> None:
    calls = Calls()

    async with running(calls) as made:
        await until(lambda: calls.made == 1)
        for _ in range(10):
            made.add(ALL)
        await until(lambda: calls.made == 2)
        await asyncio.sleep(0.01)

    assert calls.made == 2


def counts(name: str) -> dict[str, float]:
    return {
        sample.labels.get("result", sample.name): sample.value
        for family in text_string_to_metric_families(page().decode())
        for sample in family.samples
        if sample.labels.get("work") == name and not sample.name.endswith(("_bucket", "_created"))
    }


@pytest.mark.parametrize("error", [UnavailableError("away"), KeyError("spec")])
async def test_a_call_that_fails_is_counted_and_made_again(error: Exception) -> None:
    calls, name = Calls(error), f"failing by {type(error).__name__}"

    async with running(calls, name):
        await until(lambda: counts(name).get("ok"))

    seconds = "moorage_driver_pass_duration_seconds_count"
    assert {key: counts(name)[key] for key in ("ok", "error", seconds)} == {
        "ok": 1,
        "error": 1,
        seconds: 2,
    }


async def test_what_another_wrote_is_put_right_later_than_what_was_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apiserver_reconcilers, "DISAGREEMENT_SECONDS", 0.05)
    calls = Calls()

    async with running(calls) as made:
        await until(lambda: calls.made == 1)
        put_right(Modified(KEY, "old", "new"), made)
        await asyncio.sleep(0)
        assert len(made) == 0
        await until(lambda: calls.made == 2)
        put_right(Deleted(KEY, "old"), made)
        assert len(made) == 1


async def test_what_must_be_done_once_is_tried_until_it_is() -> None:
    failures: list[ApiError] = [UnavailableError("away")] * 2

    async def work() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert await until_done(work, name="testing") == "done"
    assert failures == []
