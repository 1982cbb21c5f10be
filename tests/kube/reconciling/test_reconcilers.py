"""Workers: one call for a key at a time, and none of what was added is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

import pytest

from kube.backoff import Backoff
from kube.calls.api import UnavailableError
from kube.reconciling import reconcilers
from kube.reconciling.reconcilers import Reconciler
from kube.reconciling.results import After, Done, Failed, Result, failed_call

AT_ONCE = Backoff(first_seconds=0.0, cap_seconds=0.0)


@asynccontextmanager
async def running(reconciler: Reconciler[str]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(reconciler.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110  Nobody tells a test of it.
            await asyncio.sleep(0)


async def test_what_is_added_before_and_while_it_runs_is_reconciled() -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return Done()

    reconciler = Reconciler("test", reconcile)
    reconciler.add("before")
    async with running(reconciler):
        await until(lambda: seen == ["before"])
        reconciler.add("while")
        await until(lambda: seen == ["before", "while"])
    assert len(reconciler) == 0


async def test_a_key_that_changes_while_it_is_worked_on_is_worked_on_once_more() -> None:
    calls, most, may_end = 0, 0, asyncio.Event()
    at_once = 0

    async def reconcile(_: str) -> Result:
        nonlocal calls, most, at_once
        calls, at_once = calls + 1, at_once + 1
        most = max(most, at_once)
        await may_end.wait()
        at_once -= 1
        return Done()

    reconciler = Reconciler("test", reconcile, workers=3)
    async with running(reconciler):
        reconciler.add("a")
        await until(lambda: calls == 1)
        for _ in range(5):
            reconciler.add("a")
        await asyncio.sleep(0)
        assert calls == 1
        may_end.set()
        await until(lambda: calls == 2)
        await until(lambda: at_once == 0)
    assert (calls, most) == (2, 1)


async def test_one_key_that_takes_long_keeps_no_other_waiting() -> None:
    seen: list[str] = []
    forever = asyncio.Event()

    async def reconcile(key: str) -> Result:
        seen.append(key)
        if key == "slow":
            await forever.wait()
        return Done()

    reconciler = Reconciler("test", reconcile, workers=2)
    async with running(reconciler):
        for key in ("slow", "a", "b"):
            reconciler.add(key)
        await until(lambda: seen == ["slow", "a", "b"])


async def test_no_more_keys_than_workers_are_worked_on_at_once() -> None:
    seen: list[str] = []
    may_end = asyncio.Event()

    async def reconcile(key: str) -> Result:
        seen.append(key)
        await may_end.wait()
        return Done()

    reconciler = Reconciler("test", reconcile, workers=2)
    async with running(reconciler):
        for key in "abc":
            reconciler.add(key)
        reconciler.add_after("d", 0.0)
        await until(lambda: len(seen) == 2)
        await asyncio.sleep(0.01)
        assert seen == ["a", "b"]
        may_end.set()
        await until(lambda: seen == ["a", "b", "c", "d"])


async def test_after_comes_again_by_itself_and_sooner_where_something_changes() -> None:
    seen: list[str] = []
    results: list[Result] = [After(0.01), After(3600.0), Done()]

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return results.pop(0)

    reconciler = Reconciler("test", reconcile)
    async with running(reconciler):
        reconciler.add("a")
        await until(lambda: len(seen) == 2)
        reconciler.add("a")
        await until(lambda: len(seen) == 3)


async def test_a_key_for_sooner_comes_before_the_one_that_workers_wait_for() -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return Done()

    reconciler = Reconciler("test", reconcile, workers=2)
    async with running(reconciler):
        reconciler.add_after("later", 3600.0)
        await asyncio.sleep(0)
        reconciler.add_after("sooner", 0.01)
        reconciler.add_after("soonest", 0.005)
        await until(lambda: seen == ["soonest", "sooner"])


async def test_others_are_served_between_two_keys_that_await_nothing() -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return Done()

    reconciler = Reconciler("test", reconcile)
    for key in "abc":
        reconciler.add(key)
    async with running(reconciler):
        await until(lambda: seen)
        assert seen == ["a"]


def returned(error: Exception) -> Awaitable[Result]:
    async def fail() -> Result:
        return Failed(error)

    return fail()


def raised(error: Exception) -> Awaitable[Result]:
    async def fail() -> Result:
        raise error

    return fail()


@pytest.mark.parametrize("fail", [returned, raised])
@pytest.mark.parametrize("error", [ValueError("odd"), UnavailableError("away")])
async def test_what_failed_is_tried_again_and_keeps_no_other_waiting(
    fail: Callable[[Exception], Awaitable[Result]], error: Exception
) -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        if key == "a" and seen.count("a") < 3:
            return await fail(error)
        return Done()

    reconciler = Reconciler("test", reconcile, backoff=AT_ONCE)
    async with running(reconciler):
        reconciler.add("a")
        reconciler.add("b")
        await until(lambda: seen.count("a") == 3 and "b" in seen)


async def test_a_server_that_says_when_to_come_again_is_believed() -> None:
    error = UnavailableError("busy")
    error.retry_after_seconds = 3600.0
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return Failed(error)

    reconciler = Reconciler("test", reconcile, backoff=AT_ONCE)
    async with running(reconciler):
        reconciler.add("a")
        await until(lambda: seen)
        reconciler.add("b")
        await until(lambda: "b" in seen)
    assert seen == ["a", "b"]


async def test_nothing_is_reconciled_while_no_write_may_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconcilers, "FENCED_SECONDS", 0.0)
    seen: list[str] = []
    why, asked = "The Lease may be lost.", 0

    def why_not() -> str:
        nonlocal asked
        asked += 1
        return why

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return Done()

    reconciler = Reconciler("test", reconcile, why_not=why_not)
    async with running(reconciler):
        reconciler.add("a")
        await until(lambda: asked > 5)
        assert seen == []
        why = ""
        await until(lambda: seen == ["a"])


async def test_a_call_that_is_cancelled_leaves_the_key_to_the_next_run() -> None:
    seen: list[str] = []
    forever = asyncio.Event()

    async def reconcile(key: str) -> Result:
        seen.append(key)
        await forever.wait()
        return Done()

    reconciler = Reconciler("test", reconcile)
    async with running(reconciler):
        reconciler.add("a")
        await until(lambda: seen)
    forever.set()
    reconciler.add("a")
    async with running(reconciler):
        await until(lambda: seen == ["a", "a"])


async def test_a_pause_holds_whatever_is_added_meanwhile() -> None:
    moments: list[float] = []

    async def reconcile(_: str) -> Result:
        moments.append(asyncio.get_running_loop().time())
        return Done(pause=0.05) if len(moments) < 4 else Done()

    reconciler = Reconciler("test", reconcile)
    async with running(reconciler):
        for key in ("a", "b", "c", "d"):
            reconciler.add(key)
        await until(lambda: len(moments) == 4)
    assert all(later - earlier >= 0.049 for earlier, later in pairwise(moments))


async def test_where_the_server_is_away_no_other_key_is_worked_on_until_it_is_tried_again() -> None:
    error = UnavailableError("away")
    error.retry_after_seconds = 0.05
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return Failed(error, pauses_all=True) if seen == ["a"] else Done()

    reconciler = Reconciler("test", reconcile, backoff=AT_ONCE)
    async with running(reconciler):
        reconciler.add("a")
        reconciler.add("b")
        await until(lambda: seen)
        began = asyncio.get_running_loop().time()
        await until(lambda: sorted(seen) == ["a", "a", "b"])
    assert asyncio.get_running_loop().time() - began >= 0.045


async def test_a_call_that_fails_during_a_pause_does_not_shorten_it() -> None:
    asks, quick = UnavailableError("overloaded"), UnavailableError("reset")
    asks.retry_after_seconds = 0.1
    moments: list[float] = []

    async def reconcile(key: str) -> Result:
        moments.append(asyncio.get_running_loop().time())
        if len(moments) > 2:
            return Done()
        await asyncio.sleep(0 if key == "a" else 0.01)
        return Failed(asks if key == "a" else quick, pauses_all=True)

    reconciler = Reconciler("test", reconcile, workers=2, backoff=AT_ONCE)
    reconciler.add_all(["a", "b"])
    async with running(reconciler):
        await until(lambda: len(moments) >= 3)
    assert moments[2] - moments[0] >= 0.09


async def test_while_the_server_is_away_the_pause_grows_with_each_key_that_fails() -> None:
    seen: list[str] = []
    pauses: list[float] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return Failed(UnavailableError("away"), pauses_all=True)

    reconciler = Reconciler("test", reconcile, backoff=Backoff(0.001, 100.0))
    reconciler._backoff = FakeBackoff(pauses)  # type: ignore[assignment]  # noqa: SLF001  fake
    reconciler.add_all("abcde")
    async with running(reconciler):
        await until(lambda: len(pauses) >= 5)
    assert pauses[:5] == [1, 2, 3, 4, 5]


class FakeBackoff:
    """Notes for how many failures in a row a delay is asked, and waits for none."""

    def __init__(self, asked: list[float]) -> None:
        self.asked = asked

    def delay(self, failures: int, _: object) -> float:
        self.asked.append(failures)
        return 0.0


@pytest.mark.parametrize(("answered_others", "pauses"), [(False, True), (True, False)])
def test_a_call_that_is_lost_while_others_are_answered_pauses_no_other_key(
    answered_others: bool, pauses: bool
) -> None:
    error = UnavailableError("a slow webhook")
    error.answered_others = answered_others

    assert failed_call(error).pauses_all is pauses


@pytest.mark.parametrize("steps", range(8))
async def test_what_is_added_does_not_keep_it_from_being_cancelled(steps: int) -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return After(60.0)

    reconciler = Reconciler("test", reconcile)
    reconciler.add("a")
    task = asyncio.ensure_future(reconciler.run())
    await until(lambda: seen)
    reconciler.add("a")
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()

    seen.clear()
    reconciler.add("a")
    async with running(reconciler):
        await until(lambda: seen)


async def test_what_adds_itself_again_at_once_lets_others_run() -> None:
    reconciler: Reconciler[str]

    async def reconcile(key: str) -> Result:
        reconciler.add(key)
        return Done()

    reconciler = Reconciler("test", reconcile)
    reconciler.add("a")
    async with running(reconciler):
        await asyncio.sleep(0.01)


async def test_of_several_moments_the_soonest_counts() -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> Result:
        seen.append(key)
        return Done()

    reconciler = Reconciler("test", reconcile)
    async with running(reconciler):
        reconciler.add_after("a", 1000)
        reconciler.add_after("a", 0.01)
        reconciler.add_after("a", 2000)
        await until(lambda: seen == ["a"])
