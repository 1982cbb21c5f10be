"""Claims that nobody knows are read, each once, and one after the other."""

from __future__ import annotations

import asyncio

from kube.calls.api import UnavailableError
from scheduler_plugin.cluster.apiserver_lookups import ClaimLookups, LookupSettings
from scheduler_plugin.objects.claims import ClaimView
from tests.fakes.pods import running


class FakeReads:
    """Notes what is read; fails as often as a test says."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.at_once = 0
        self.failures = 0
        self.done: asyncio.Queue[None] = asyncio.Queue()

    async def refresh_claim(self, namespace: str, name: str) -> ClaimView | None:
        self.at_once += 1
        assert self.at_once == 1
        await asyncio.sleep(0)
        self.at_once -= 1
        self.read.append(f"{namespace}/{name}")
        self.done.put_nowait(None)
        if self.failures:
            self.failures -= 1
            raise UnavailableError("the API server is away")
        return None

    async def until(self, count: int) -> None:
        """Wait for so many more reads."""
        async with asyncio.timeout(10):
            for _ in range(count):
                await self.done.get()


async def test_a_claim_that_many_ask_for_is_read_once() -> None:
    reads = FakeReads()
    lookups = ClaimLookups(reads.refresh_claim)
    lookups.add([("a", "one"), ("a", "two"), ("a", "one")])
    lookups.add([("a", "one")])

    async with running(lookups.run()):
        await reads.until(2)
        lookups.add([])
        lookups.add([("b", "one")])
        await reads.until(1)

    assert reads.read == ["a/one", "a/two", "b/one"]


async def test_a_read_that_fails_is_left_to_the_next_who_asks() -> None:
    reads = FakeReads()
    reads.failures = 1
    lookups = ClaimLookups(reads.refresh_claim, LookupSettings(failed_seconds=0.0))
    lookups.add([("a", "one"), ("a", "two")])

    async with running(lookups.run()):
        await reads.until(2)
        lookups.add([("a", "one")])
        await reads.until(1)

    assert reads.read == ["a/one", "a/two", "a/one"]


async def test_more_than_can_be_read_are_left_to_the_watch() -> None:
    reads = FakeReads()
    lookups = ClaimLookups(reads.refresh_claim, LookupSettings(most_waiting=2))
    lookups.add([("a", name) for name in ("one", "two", "three")])

    async with running(lookups.run()):
        await reads.until(2)

    assert reads.read == ["a/one", "a/two"]
