"""The dashboard in a large cluster: what Filter notices of ten viewers, and what a viewer waits.

    python -m bench.dashboard [--claims 10000] [--queues 1000] [--viewers 10] [--seconds 20]

The dashboard and its viewers are a process of their own, as in a cluster; both processes share the
machine. Filter calls come in over the event loop of this one, as in the plugin, each after a short
rest; what is printed is their p99 by the clock, from the moment when each was due, without the
other process and beside it, one after the other. Each viewer asks for the state and a window of
every list once a second, while claims change all the time. Then, with Chromium: from a reload to
the first row, and the longest frame while the list of claims is scrolled.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import perf_counter
from typing import Any, cast

from playwright.async_api import Page, async_playwright

from bench import filter_handler, verdicts
from bench.filter_handler import Size
from kube.calls.api import ApiClient
from kube.http_server import Ending, serving
from local_cluster import debian
from scheduler_plugin.accounting.world import World
from scheduler_plugin.dashboard.apiserver_reviews import TOKEN_REVIEWS, Reviews
from scheduler_plugin.dashboard.cluster_snapshots import Snapshots
from scheduler_plugin.dashboard.http_app import dashboard_app
from scheduler_plugin.dashboard.http_views import Views
from scheduler_plugin.dashboard.leader.answers import PodAnswer
from scheduler_plugin.dashboard.leader.http_leader import Leader
from scheduler_plugin.dashboard.parts import Part
from scheduler_plugin.dashboard.recent_events import Recent

REST_SECONDS = 0.005


class Everybody:
    """An API server that lets every viewer see everything, and an elected plugin."""

    async def create(self, resource: Any, _body: Any, **_: Any) -> dict[str, Any]:
        if resource == TOKEN_REVIEWS:
            return {"status": {"authenticated": True, "user": {"username": "viewer"}}}
        return {"status": {"allowed": True}}

    async def why_not(self) -> str:
        return ""

    async def pod(self, _namespace: str, _name: str) -> PodAnswer:
        return PodAnswer(place="")


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
    user = await views.reviews.viewer(f"token-{number}")
    while True:
        await views.state(user, "", "")
        for part in Part:
            query = await views.query(user, part, f"{number}" if number % 2 else "", "")
            await views.rows(query, 100 * number, 100)
        await asyncio.sleep(1.0)


async def change(world: World, snapshots: Snapshots | None, queues: int) -> None:
    """Claims come and go."""
    number = 0
    while True:
        found = verdicts.claim(number % 1000, queues, allocated=True)
        world.delete_claim(found.uid)
        world.put_claim(found)
        if snapshots is not None:
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


async def browser(port: int) -> None:
    debian.ensure_packages({"chromium": "chromium"})
    async with async_playwright() as play:
        path = debian.find("chromium")
        launched = await play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = await launched.new_page()
        await page.goto(f"http://127.0.0.1:{port}/#claims")
        await page.fill("#token", "token")
        await page.click("button[type=submit]")
        await page.locator("#list .row .cell").first.wait_for()
        again = await first_row(page)
        times = await frames(page)
        p95 = times[int(0.95 * len(times))]
        print(f"browser: first row {again:.2f} s after a reload;", end=" ")
        print(f"scrolling p50 {times[len(times) // 2]:.0f} ms a frame, p95 {p95:.0f} ms")
        await launched.close()


async def serve(args: argparse.Namespace) -> None:
    """The other process: the dashboard and its viewers, until it is ended."""
    world = verdicts.build(args.claims, args.queues)
    snapshots, everybody = Snapshots(world, Recent()), Everybody()
    reviews, leader = Reviews(cast(ApiClient, everybody)), cast(Leader, everybody)
    views = Views(world, snapshots, reviews, leader, str)
    gc.collect()
    gc.freeze()
    with beside(snapshots.run(), change(world, snapshots, args.queues)):
        began = perf_counter()
        await snapshots.now()
        took = perf_counter() - began
        async with serving(dashboard_app(views), ("127.0.0.1", 0), ending=Ending(1)) as bound:
            with beside(*(viewer(views, number) for number in range(args.viewers))):
                print(bound.port, f"{took:.2f}", flush=True)
                await bound.server


@asynccontextmanager
async def dashboard(args: argparse.Namespace) -> AsyncIterator[tuple[int, str]]:
    """Its port, and how many seconds the first look took."""
    sizes = (f"--{name}={getattr(args, name)}" for name in ("claims", "queues", "viewers"))
    command = (sys.executable, "-m", "bench.dashboard", "--serve", *sizes)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    port, took = (await process.stdout.readline()).decode().split()
    try:
        yield int(port), took
    finally:
        process.terminate()
        await process.wait()


async def measure(args: argparse.Namespace) -> None:
    size = Size(claims=args.claims, queues=args.queues, names=100, calls=1000)
    extender = filter_handler.extender(size)
    world: World = vars(extender)["_cluster"].world
    handle, calls = filter_handler.handler(extender), filter_handler.bodies(size)
    gc.collect()
    gc.freeze()
    with beside(change(world, None, args.queues)):
        await filters(handle, calls, 2.0)
        alone = await filters(handle, calls, args.seconds)
        async with dashboard(args) as (port, took):
            print(f"first look: {took} s")
            watched = await filters(handle, calls, args.seconds)
            for share in (0.5, 0.99):
                a, b = (times[int(share * len(times))] for times in (alone, watched))
                beside_them = f"{b:.2f} ms beside {args.viewers} viewers"
                print(f"Filter p{share * 100:.0f}: {a:.2f} ms alone, {beside_them},", end=" ")
                print(f"ratio {b / a:.2f}")
            await browser(port)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, value in (("claims", 10_000), ("queues", 1_000), ("viewers", 10), ("seconds", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    found = parser.parse_args()
    asyncio.run(serve(found) if found.serve else measure(found))
