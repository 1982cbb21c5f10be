"""Locks by key: who meets whom, and that nothing is left."""

from __future__ import annotations

import asyncio

import pytest

from kube.key_locks import KeyLocks
from tests.left_overs import kept_in


async def test_those_who_want_one_key_follow_each_other_in_order() -> None:
    locks: KeyLocks[str] = KeyLocks()
    told: list[str] = []

    async def work(name: str, *keys: str) -> None:
        async with locks.of(keys):
            told.append(f"{name} begins")
            await asyncio.sleep(0)
            told.append(f"{name} ends")

    await asyncio.gather(work("first", "a", "b"), work("second", "b", "c"), work("third", "c"))

    begun = [line.removesuffix(" begins") for line in told if line.endswith("begins")]
    for one, other in (("first", "second"), ("second", "third")):
        before, after = sorted((one, other), key=begun.index)
        assert told.index(f"{before} ends") < told.index(f"{after} begins")
    assert kept_in(locks) == {}


async def test_those_who_share_no_key_do_not_meet() -> None:
    locks: KeyLocks[str] = KeyLocks()

    async with locks.of(["a"]), asyncio.timeout(1), locks.of(["b"]), locks.of([]):
        assert kept_in(locks) == {"._locks": 2, "._wanted": 2}
    assert kept_in(locks) == {}


async def test_one_who_gives_up_waiting_keeps_nobody_out() -> None:
    locks: KeyLocks[str] = KeyLocks()

    async def wait() -> None:
        async with locks.of(["a", "b"]):
            pytest.fail("the lock is held")

    async with locks.of(["b"]):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        assert kept_in(locks) == {"._locks": 2, "._wanted": 2}, (
            "it holds one and waits for the other"
        )
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(1), locks.of(["a"]):
            pass
    assert kept_in(locks) == {}


async def test_an_error_inside_frees_the_keys() -> None:
    locks: KeyLocks[str] = KeyLocks()

    with pytest.raises(ValueError, match="inside"):
        async with locks.of(["a", "b"]):
            raise ValueError("inside")

    assert kept_in(locks) == {}
