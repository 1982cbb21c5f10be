"""Places that clients share: nobody has them all, and nobody waits behind another's thousand."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

from kube.client_semaphore import ClientSemaphore


class Work:
    """Work that takes until a test lets it end."""

    def __init__(self, places: ClientSemaphore[str]) -> None:
        self.places = places
        self.under_way: Counter[str] = Counter()
        self.may_end = asyncio.Event()

    async def of(self, client: str) -> None:
        async with self.places.of(client):
            self.under_way[client] += 1
            await self.may_end.wait()


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_client_that_asks_without_end_leaves_places_for_others() -> None:
    work = Work(ClientSemaphore(most=4, most_of_one=2))
    asked = [asyncio.create_task(work.of("flood")) for _ in range(1000)]
    await turns()
    asked += [asyncio.create_task(work.of(name)) for name in ("a", "b")]
    await turns()

    assert work.under_way == {"flood": 2, "a": 1, "b": 1}
    work.may_end.set()
    await asyncio.gather(*asked)


async def test_all_together_have_no_more_than_there_are() -> None:
    work = Work(ClientSemaphore(most=4, most_of_one=2))
    asked = [asyncio.create_task(work.of(name)) for name in "aabbcc"]
    await turns()

    assert work.under_way == {"a": 2, "b": 2}
    work.may_end.set()
    await asyncio.gather(*asked)
    assert work.under_way.total() == 6


async def test_who_gives_up_leaves_his_place() -> None:
    work = Work(ClientSemaphore(most=1, most_of_one=1))
    asked = [asyncio.create_task(work.of("a")) for _ in range(3)]
    await turns()
    for one in asked:
        one.cancel()
    await asyncio.wait(asked)
    work.may_end.set()

    async with asyncio.timeout(5):
        await work.of("a")
    del asked, one
    gc.collect()
    assert not list(work.places._of_one)  # noqa: SLF001
