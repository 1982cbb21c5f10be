"""The udev handler on the kernel of this machine: loop devices come, change and go."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest

from driver.devices import Device
from driver.discovery.udev.details import UdevDetails, parse_udev_details
from driver.discovery.udev.handler import UdevHandler
from driver.discovery.udev.handler_subscriptions import Subscription
from driver.discovery.udev.netlink_watch import UdevSettings
from driver.discovery.udev.sysfs import Looker
from driver.discovery.udev.uevents import Source, Uevent
from tests.driver.discovery.udev.loops import Loops, is_block_device

Lists = AsyncGenerator[tuple[Device, ...], None]

SOON = 10.0
"""Seconds; far more than anything here takes."""

A_WHILE = 0.3
NEVER = timedelta(hours=1)


def details(rule: str) -> UdevDetails:
    parsed = parse_udev_details(f"udevRules: ['{rule}']")
    assert isinstance(parsed, UdevDetails), parsed
    return parsed


def all_of(loops: Loops, more: str = "") -> UdevDetails:
    return details(f'SUBSYSTEM=="block", KERNEL=="{loops.glob}"{more}')


def from_kernel() -> Source:
    return Source.KERNEL


def a_handler(
    *,
    rescan: timedelta = NEVER,
    check: timedelta = NEVER,
    source: Callable[[], Source] = from_kernel,
    buffer: int = 16 * 1024 * 1024,
) -> UdevHandler:
    settings = UdevSettings(
        rescan_interval=rescan, source_interval=check, source=source, receive_buffer_bytes=buffer
    )
    return UdevHandler(settings)


async def ids_when(lists: Lists, wanted: Callable[[set[str]], bool]) -> set[str]:
    """The ids of the first list that is as wanted."""
    async with asyncio.timeout(SOON):
        async for devices in lists:
            ids = {device.id for device in devices}
            if wanted(ids):
                return ids
    raise AssertionError("the lists ended")


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not condition():  # noqa: ASYNC110 - nothing else would tell
            await asyncio.sleep(0.01)


async def is_quiet(lists: Lists) -> bool:
    """Whether no list comes for a while. Ends the generator."""
    try:
        async with asyncio.timeout(A_WHILE):
            await anext(lists)
    except TimeoutError:
        return True
    return False


async def test_the_first_list_comes_even_if_it_is_empty(loops: Loops) -> None:
    async with aclosing(a_handler().discover(all_of(loops))) as lists:
        assert await anext(lists) == ()


async def test_the_first_list_holds_what_is_there(loops: Loops) -> None:
    loops.plug(1)
    loops.plug(0)

    async with aclosing(a_handler().discover(all_of(loops))) as lists:
        assert [device.id for device in await anext(lists)] == [loops.path(0), loops.path(1)]


async def test_a_plugged_device_comes_with_its_node_and_goes_when_unplugged(loops: Loops) -> None:
    async with aclosing(a_handler().discover(all_of(loops))) as lists:
        await anext(lists)

        loops.plug(0)
        async with asyncio.timeout(SOON):
            [device] = await anext(lists)
        assert device.properties == {
            "UDEV_DEVPATH": loops.path(0),
            "UDEV_DEVNODE": f"/dev/{loops.name(0)}",
        }
        assert is_block_device(device.properties["UDEV_DEVNODE"])

        loops.unplug(0)
        async with asyncio.timeout(SOON):
            assert await anext(lists) == ()


async def test_a_change_of_the_device_is_looked_at(loops: Loops, tmp_path: Path) -> None:
    file = tmp_path / "backing"
    file.write_bytes(bytes(4096))
    loops.plug(0)
    wanted = all_of(loops, f', ATTR{{loop/backing_file}}=="{file}"')

    async with aclosing(a_handler().discover(wanted)) as lists:
        assert await anext(lists) == ()
        with loops.backed(0, file):
            assert await ids_when(lists, bool) == {loops.path(0)}
        assert await ids_when(lists, lambda ids: not ids) == set()


async def test_of_a_burst_nothing_is_missed(loops: Loops) -> None:
    every = {loops.path(index) for index in range(64)}

    async with aclosing(a_handler().discover(all_of(loops))) as lists:
        await anext(lists)
        async with asyncio.TaskGroup() as group:
            for index in range(64):
                group.create_task(asyncio.to_thread(loops.plug, index))
        assert await ids_when(lists, lambda ids: len(ids) == 64) == every

        await asyncio.to_thread(loops.unplug_all)
        assert await ids_when(lists, lambda ids: not ids) == set()


async def test_a_device_that_flaps_ends_as_it_is(loops: Loops) -> None:
    def flap() -> None:
        for _ in range(20):
            loops.plug(0)
            loops.unplug(0)
        loops.plug(1)

    async with aclosing(a_handler().discover(all_of(loops))) as lists:
        await anext(lists)
        await asyncio.to_thread(flap)

        assert await ids_when(lists, lambda ids: ids == {loops.path(1)})
        assert await is_quiet(lists)


async def test_what_changes_nothing_is_not_told(loops: Loops) -> None:
    loops.plug(0)
    handler = a_handler(rescan=timedelta(seconds=0.02))

    async with aclosing(handler.discover(all_of(loops))) as lists:
        await anext(lists)
        for _ in range(5):
            loops.stir(0)
        loops.plug(1)
        await ids_when(lists, lambda ids: len(ids) == 2)

        assert await is_quiet(lists)


async def test_each_reader_hears_of_its_own_devices(loops: Loops) -> None:
    handler = a_handler()
    first = details(f'KERNEL=="{loops.name(0)}"')
    second = details(f'KERNEL=="{loops.name(1)}"')

    async with aclosing(handler.discover(first)) as one:
        assert await anext(one) == ()
        async with aclosing(handler.discover(second)) as two:
            assert await anext(two) == ()
            loops.plug(1)
            assert await ids_when(two, bool) == {loops.path(1)}
        loops.plug(0)
        assert await ids_when(one, bool) == {loops.path(0)}


async def test_readers_of_the_same_devices_hear_the_same(loops: Loops) -> None:
    handler = a_handler()

    async with (
        aclosing(handler.discover(all_of(loops))) as one,
        aclosing(handler.discover(all_of(loops))) as two,
    ):
        first, second = await asyncio.gather(anext(one), anext(two))
        assert first == second == ()
        loops.plug(0)
        async with asyncio.timeout(SOON):
            assert await anext(one) == await anext(two) != ()


async def test_a_slow_reader_gets_the_newest_list_at_once(loops: Loops) -> None:
    handler = a_handler()

    async with (
        aclosing(handler.discover(all_of(loops))) as slow,
        aclosing(handler.discover(all_of(loops))) as quick,
    ):
        await asyncio.gather(anext(slow), anext(quick))
        for index in range(3):
            loops.plug(index)
            await ids_when(quick, lambda ids, count=index + 1: len(ids) == count)  # type: ignore[misc]

        assert len(await anext(slow)) == 3


async def test_a_change_that_was_undone_before_it_was_read_is_none(loops: Loops) -> None:
    handler = a_handler()

    async with (
        aclosing(handler.discover(all_of(loops))) as slow,
        aclosing(handler.discover(all_of(loops))) as quick,
    ):
        await asyncio.gather(anext(slow), anext(quick))
        loops.plug(0)
        await ids_when(quick, bool)
        loops.unplug(0)
        await ids_when(quick, lambda ids: not ids)

        assert await is_quiet(slow)


async def test_lost_events_are_made_up_for_by_a_scan(
    loops: Loops, caplog: pytest.LogCaptureFixture
) -> None:
    async with aclosing(a_handler(buffer=1).discover(all_of(loops))) as lists:
        await anext(lists)
        for index in range(16):  # the event loop reads nothing meanwhile
            loops.plug(index)

        assert len(await ids_when(lists, lambda ids: len(ids) == 16)) == 16
    assert "device events were lost" in caplog.text


async def test_a_rescan_finds_what_no_event_told(loops: Loops) -> None:
    """Nobody sends to udevd's group, for there is no udevd."""
    handler = a_handler(source=lambda: Source.UDEVD, rescan=timedelta(seconds=0.05))

    async with aclosing(handler.discover(all_of(loops))) as lists:
        assert await anext(lists) == ()
        loops.plug(0)
        assert await ids_when(lists, bool) == {loops.path(0)}
        loops.unplug(0)
        assert await ids_when(lists, lambda ids: not ids) == set()


async def test_when_udevd_goes_the_kernel_is_listened_to(
    loops: Loops, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sources = iter([Source.UDEVD, Source.UDEVD])
    soon = timedelta(seconds=0.05)
    handler = a_handler(source=lambda: next(sources, Source.KERNEL), check=soon)
    loops.plug(0)

    async with aclosing(handler.discover(all_of(loops))) as lists:
        assert len(await anext(lists)) == 1
        await eventually(lambda: "source=kernel" in caplog.text)
        loops.plug(1)
        assert await ids_when(lists, lambda ids: len(ids) == 2)


async def test_a_failure_is_told_and_tried_again_and_nothing_is_yielded_meanwhile(
    loops: Loops,
) -> None:
    loops.plug(0)
    may_succeed = threading.Event()

    def source() -> Source:
        if not may_succeed.is_set():
            raise PermissionError(1, "Operation not permitted")
        return Source.KERNEL

    handler = a_handler(source=source)
    async with aclosing(handler.discover(all_of(loops))) as lists:
        first = asyncio.ensure_future(anext(lists))
        await eventually(lambda: handler.problem is not None)
        assert handler.problem == (
            "Devices cannot be discovered: [Errno 1] Operation not permitted."
        )
        assert not first.done()

        may_succeed.set()
        async with asyncio.timeout(SOON):
            assert [device.id for device in await first] == [loops.path(0)]
        assert handler.problem is None


async def test_a_broken_socket_is_replaced(loops: Loops) -> None:
    class Broken:
        def receive(self) -> list[Uevent]:
            raise OSError(errno.ENOMEM, "Out of memory")

    handler = a_handler()
    async with aclosing(handler.discover(all_of(loops))) as lists:
        await anext(lists)
        assert handler.watch is not None
        handler.watch.receive(Broken())  # type: ignore[arg-type]
        await eventually(lambda: handler.problem is not None)
        loops.plug(0)

        assert await ids_when(lists, bool) == {loops.path(0)}
        assert handler.problem is None


async def test_a_device_that_udevd_may_not_be_done_with_is_believed_at_the_second_sight(
    loops: Loops,
) -> None:
    """No udevd runs, so that no device is ever settled."""
    loops.plug(0)
    path, looker = loops.path(0), Looker(settles=True)
    new, old, told = (Subscription(all_of(loops)) for _ in range(3))
    old.offer()
    told.offer()

    assert looker.look([path], [new, old], by_event=False) == {new}
    assert looker.look([path], [told], by_event=True) == {told}
    assert looker.look([path], [old], by_event=False) == set()
    assert looker.look([path], [old], by_event=False) == {old}


async def test_a_mistake_of_ours_reaches_every_reader(loops: Loops) -> None:
    def source() -> Source:
        raise RuntimeError("a mistake")

    handler = a_handler(source=source)
    async with (
        aclosing(handler.discover(all_of(loops))) as one,
        aclosing(handler.discover(all_of(loops))) as two,
    ):
        results = await asyncio.gather(anext(one), anext(two), return_exceptions=True)

    assert [str(result) for result in results] == ["a mistake", "a mistake"]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_nothing_stays_open_after_the_last_reader(loops: Loops) -> None:
    handler = a_handler()
    before = open_files()

    for _ in range(3):
        async with aclosing(handler.discover(all_of(loops))) as one:
            await anext(one)
            async with aclosing(handler.discover(all_of(loops))) as two:
                await anext(two)

    await eventually(lambda: not any(t.name.startswith("udev") for t in threading.enumerate()))
    assert open_files() == before


async def test_a_cancelled_reader_leaves_nothing_behind(loops: Loops) -> None:
    handler = a_handler()
    before = open_files()

    async def read() -> None:
        async with aclosing(handler.discover(all_of(loops))) as lists:
            async for _ in lists:
                pass

    for delay in (0, 0.001, 0.01, 0.1):
        task = asyncio.create_task(read())
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    await eventually(lambda: open_files() == before)
