"""The dashboard in a large cluster: what Filter notices of ten viewers, and what a viewer waits.

    python -m bench.dashboard [--claims 10000] [--queues 1000] [--viewers 10] [--seconds 20]

Filter calls come in over the event loop that serves the viewers, as in the plugin, each after a
short rest; what is printed is their p99 by the clock, from the moment when each was due, without
viewers and beside them, one after the other in the same process. Each viewer asks for the state and
a window of every list once a second, while claims change all the time. Then, with Chromium: from a
reload to the first row, and the longest frame while the list of claims is scrolled.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, cast

from playwright.async_api import Page, async_playwright

from bench import filter_handler, verdicts
from bench.filter_handler import Size
from kube.api import ApiClient
from kube.http_server import Ending, serving
from local_cluster import debian
from scheduler_plugin.accounting.world import World
from scheduler_plugin.dashboard.apiserver_reviews import TOKEN_REVIEWS, Reviews
from scheduler_plugin.dashboard.cluster_snapshots import Snapshots
from scheduler_plugin.dashboard.http_app import dashboard_app
from scheduler_plugin.dashboard.http_leader import LeaderPages
from scheduler_plugin.dashboard.http_views import Views
from scheduler_plugin.dashboard.parts import Part
from scheduler_plugin.dashboard.told_events import Recent
from scheduler_plugin.waiting.decisions import KnownWaits

REST_SECONDS = 0.005


class Everybody:
    """An API server that lets everybody see everything, and an elected plugin."""

    async def create(self, resource: Any, _body: Any, **_: Any) -> dict[str, Any]:
        if resource == TOKEN_REVIEWS:
            return {"status": {"authenticated": True, "user": {"username": "viewer"}}}
        return {"status": {"allowed": True}}

    def why_not_told(self) -> str:
        return ""

    def waiting(self, _namespace: str, _name: str) -> str:
        return "nobody waits"


async def filters(handle: Any, calls: list[bytes], seconds: float) -> list[float]:
    """Milliseconds from when each was due to its answer, in the order of size."""
    times, number, end = [], 0, perf_counter() + seconds
    while perf_counter() < end:
        due = perf_counter() + REST_SECONDS
        await asyncio.sleep(REST_SECONDS)
        handle(calls[number % len(calls)])
        times.append((perf_counter() - due) * 1000)
        number += 1
    return sorted(times)


async def viewer(views: Views, number: int) -> None:
    """Watches one list after the other."""
    who = await views.reviews.viewer(f"token-{number}")
    while True:
        await views.state(who, "", "")
        for part in Part:
            asked = await views.asked(who, part, f"{number}" if number % 2 else "", "")
            await views.rows(asked, 100 * number, 100)
        await asyncio.sleep(1.0)


async def change(world: World, snapshots: Snapshots, queues: int) -> None:
    """Claims come and go."""
    number = 0
    while True:
        found = verdicts.claim(number % 1000, queues, allocated=True)
        world.delete_claim(found.uid)
        world.put_claim(found)
        snapshots.changed()
        number += 1
        await asyncio.sleep(0.02)


@contextmanager
def beside(*work: Any) -> Iterator[None]:
    tasks = [asyncio.ensure_future(one) for one in work]
    yield
    for task in tasks:
        task.cancel()


async def first_row(page: Page) -> float:
    began = perf_counter()
    await page.reload()
    await page.locator("#list .row:not(.loading) .cell").first.wait_for()
    return perf_counter() - began


async def frames(page: Page) -> list[float]:
    """Milliseconds between frames while the list is scrolled for three seconds."""
    found = await page.evaluate(
        """async () => {
          const list = document.getElementById("list"), times = [];
          const end = performance.now() + 3000;
          let last = performance.now();
          while (last < end) {
            const now = await new Promise(requestAnimationFrame);
            times.push(now - last); last = now; list.scrollTop += 900;
          }
          return times.slice(1);
        }"""
    )
    return sorted(found)


async def browser(views: Views) -> None:
    debian.ensure_packages({"chromium": "chromium"})
    address = ("127.0.0.1", 0)
    async with (
        serving(dashboard_app(views), address, ending=Ending(1)) as bound,
        async_playwright() as play,
    ):
        path = debian.find("chromium")
        launched = await play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = await launched.new_page()
        await page.goto(f"http://127.0.0.1:{bound.port}/#claims")
        await page.fill("#token", "token")
        await page.click("button[type=submit]")
        await page.locator("#list .row .cell").first.wait_for()
        again = await first_row(page)
        times = await frames(page)
        p95 = times[int(0.95 * len(times))]
        print(f"browser: first row {again:.2f} s after a reload;", end=" ")
        print(f"scrolling p50 {times[len(times) // 2]:.0f} ms a frame, p95 {p95:.0f} ms")
        await launched.close()


async def measure(args: argparse.Namespace) -> None:
    size = Size(claims=args.claims, queues=args.queues, names=100, calls=1000)
    extender = filter_handler.extender(size)
    world: World = vars(extender)["_cluster"].world
    handle, calls = filter_handler.handler(extender), filter_handler.bodies(size)
    snapshots, everybody = Snapshots(world, Recent()), Everybody()
    reviews = Reviews(cast(ApiClient, everybody))
    gates, leader = cast(KnownWaits, everybody), cast(LeaderPages, everybody)
    views = Views(world, snapshots, reviews, gates, lambda: "", leader)
    gc.collect()
    gc.freeze()
    with beside(snapshots.run(), change(world, snapshots, args.queues)):
        await filters(handle, calls, 2.0)
        alone = await filters(handle, calls, args.seconds)
        began = perf_counter()
        await snapshots.now()
        print(f"first look: {perf_counter() - began:.2f} s")
        with beside(*(viewer(views, number) for number in range(args.viewers))):
            watched = await filters(handle, calls, args.seconds)
        for share in (0.5, 0.99):
            a, b = (times[int(share * len(times))] for times in (alone, watched))
            print(
                f"Filter p{share * 100:.0f}: {a:.2f} ms alone, {b:.2f} ms beside {args.viewers}",
                end=" ",
            )
            print(f"viewers, ratio {b / a:.2f}")
        await browser(views)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, value in (("claims", 10_000), ("queues", 1_000), ("viewers", 10), ("seconds", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    asyncio.run(measure(parser.parse_args()))
