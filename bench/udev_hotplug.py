"""From the plug of a device to the list that a reader of the udev handler gets.

    python -m bench.udev_hotplug [--plugs 60] [--present 0,500]

A plug is LOOP_CTL_ADD, in a thread of its own; time runs from before the call. The baseline, in
the same run and in turns with the handler, is an asyncio reader of a raw netlink socket that does
nothing but look for the path in what it receives. Needs root and /dev/loop-control; all devices
are removed at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import socket
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import timedelta

from driver.devices import Device
from driver.discovery.udev.details import UdevDetails, parse_udev_details
from driver.discovery.udev.handler import UdevHandler
from driver.discovery.udev.netlink import udevd_source
from driver.discovery.udev.netlink_watch import UdevSettings
from driver.discovery.udev.uevents import Source
from tests.driver.discovery.udev.loops import Loops, loops

BLOCK = 10
"""Plugs before it is the other's turn."""

Measure = Callable[[int], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds of one measured thing."""

    name: str
    times: tuple[float, ...]

    @property
    def p50(self) -> float:
        return statistics.median(self.times)

    @property
    def p99(self) -> float:
        return sorted(self.times)[max(0, -(-len(self.times) * 99 // 100) - 1)]

    def __str__(self) -> str:
        return f"{self.name:<38} {self.p50:8.2f} {self.p99:8.2f} {max(self.times):8.2f}"


async def plugged(devices: Loops, index: int) -> float:
    """Plug; the time before."""

    def plug() -> float:
        before = time.perf_counter()
        devices.plug(index)
        return before

    return await asyncio.to_thread(plug)


@contextmanager
def raw_socket(source: Source) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 15) as raw:
        raw.setblocking(False)
        raw.bind((0, source))
        yield raw


def baseline(devices: Loops, source: Source) -> Measure:
    async def measure(index: int) -> float:
        path = devices.path(index).encode()
        loop = asyncio.get_running_loop()
        with raw_socket(source) as raw:
            start = asyncio.create_task(plugged(devices, index))
            while path not in await loop.sock_recv(raw, 65536):
                pass
            end = time.perf_counter()
        return end - await start

    return measure


def through_handler(devices: Loops, lists: AsyncGenerator[tuple[Device, ...], None]) -> Measure:
    async def measure(index: int) -> float:
        path = devices.path(index)
        start = asyncio.create_task(plugged(devices, index))
        async for found in lists:
            if any(device.id == path for device in found):
                break
        end = time.perf_counter()
        return end - await start

    return measure


async def in_turns(devices: Loops, first: int, plugs: int, *measures: Measure) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in measures]
    index = first
    while len(times[-1]) < plugs:
        for measure, measured in zip(measures, times, strict=True):
            for _ in range(BLOCK):
                measured.append(await measure(index) * 1000)
                await asyncio.to_thread(devices.unplug, index)
                index = first + (index - first + 1) % 100
    return times


async def ticks(longest: list[float]) -> None:
    """How late the event loop is at worst, in milliseconds."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest[0] = max(longest[0], (time.perf_counter() - before - 0.001) * 1000)


def details(devices: Loops) -> UdevDetails:
    rule = f'SUBSYSTEM=="block", KERNEL=="{devices.glob}", ATTR{{size}}=="0"'
    parsed = parse_udev_details(f"udevRules: ['{rule}']")
    assert isinstance(parsed, UdevDetails), parsed
    return parsed


async def run(present: int, plugs: int, rescan: timedelta, label: str) -> None:
    source = udevd_source()
    with loops() as devices:
        for index in range(present):
            await asyncio.to_thread(devices.plug, index)
        handler = UdevHandler(UdevSettings(rescan_interval=rescan))
        before = time.perf_counter()
        async with aclosing(handler.discover(details(devices))) as lists:
            assert len(await anext(lists)) == present
            first = (time.perf_counter() - before) * 1000
            cpu = time.process_time()
            raw, handled = await in_turns(
                devices, present, plugs, baseline(devices, source), through_handler(devices, lists)
            )
            cpu = (time.process_time() - cpu) * 1000 / (2 * len(raw))
            longest = [0.0]
            ticker = asyncio.create_task(ticks(longest))
            async with aclosing(UdevHandler().discover(details(devices))) as again:
                await anext(again)
            ticker.cancel()
    report(label, Row("raw netlink", tuple(raw)), Row("udev handler", tuple(handled)))
    print(
        f"  first list {first:.0f} ms; a scan delays the event loop by {longest[0]:.1f} ms at most;"
    )
    print(f"  {cpu:.1f} ms of CPU a plug and unplug, baseline and threads included")


def report(label: str, raw: Row, handled: Row) -> None:
    print(f"{label}: {len(handled.times)} plugs{'':<12} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    print(f"  {raw}")
    print(f"  {handled}")
    p50, p99 = handled.p50 / raw.p50, handled.p99 / raw.p99
    print(f"  {'ratio':<38} {p50:8.2f} {p99:8.2f}")


async def main() -> None:
    parser = argparse.ArgumentParser(description="Hot-plug to the udev handler's list.")
    parser.add_argument("--plugs", type=int, default=60)
    parser.add_argument("--present", default="0,500")
    arguments = parser.parse_args()
    print(f"source={udevd_source().name.lower()}, {os.cpu_count()} cores")
    hour = timedelta(hours=1)
    for present in map(int, arguments.present.split(",")):
        await run(present, arguments.plugs, hour, f"{present} present")
    always = timedelta(milliseconds=1)
    await run(present, arguments.plugs, always, f"{present} present, scanning all the time")
    print(f"peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    asyncio.run(main())
