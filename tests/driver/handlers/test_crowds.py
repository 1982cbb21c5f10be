"""Many handlers of other processes, and those that are the end of the driver, over real sockets."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from pathlib import Path

import pytest

from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers import handler_conversations, registration_socket, sdk
from driver.handlers.external_handlers import FILE, ExternalHandlers
from driver.handlers.registrations import Endpoint, HandlerState, Registration
from driver.handlers.remembered import load
from driver.handlers.report_limits import HandlerLimits
from driver.handlers.sdk_requests import Place
from driver.handlers.table import TableFullError
from driver.instances import handler_discoveries as discoveries
from driver.plumbing.disk import Folder
from kube.backoff import Backoff
from tests.driver.builders import NOW
from tests.driver.handler_nodes import (
    ANode,
    Context,
    Shelf,
    answer,
    devices,
    foreign,
    register,
    running,
)

NETWORK = "/var/lib/akri/network"
LIMITS = HandlerLimits(network_folder=NETWORK)
SHELF = Registration(Endpoint("shelf", "/var/lib/akri/shelf.sock"), network=False, shared=False)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration_socket, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sdk, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sdk, "GRACE_SECONDS", 0)
    monkeypatch.setattr(discoveries, "_BACKOFF", Backoff(0.02, 0.1))


def camera(number: int) -> Registration:
    endpoint = Endpoint(("onvif", "opcua")[number % 2], f"{NETWORK}/{number}.sock")
    return Registration(endpoint, network=False, shared=True)


async def test_handlers_without_privileges_leave_their_room_to_others(tmp_path: Path) -> None:
    handlers = ExternalHandlers(Folder(tmp_path), lambda: NOW)
    refused = 0
    for number in range(256):
        try:
            await handlers.register(camera(number), folder=NETWORK)
        except TableFullError:
            refused += 1
        handlers.table.reached(camera(number).endpoint, number, NOW)

    await handlers.register(SHELF)

    assert SHELF.endpoint in handlers.table
    assert refused == 256 - 4


def sized(handler: int, count: int) -> v0.DiscoverResponse:
    return answer(*devices(f"{handler}-{number}" for number in range(count)))


async def test_handlers_at_their_limit_of_devices_do_not_fill_the_memory(tmp_path: Path) -> None:
    """Who came first has what it reported; the others are told why not, and asked again."""
    node, first = ANode(tmp_path), asyncio.Event()

    async def respond(
        request: v0.DiscoverRequest, context: Context
    ) -> AsyncIterator[v0.DiscoverResponse]:
        yield sized(0, 5_000)
        await first.wait()
        yield sized(0, 0)
        await asyncio.Event().wait()

    async def alike(
        request: v0.DiscoverRequest, context: Context
    ) -> AsyncIterator[v0.DiscoverResponse]:
        yield sized(1, 5_000)
        await asyncio.Event().wait()

    paths = [tmp_path / f"{number}.sock" for number in range(2)]
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running(node.run()))
        await stack.enter_async_context(foreign(paths[0], respond))
        await stack.enter_async_context(foreign(paths[1], alike))
        await register(node.socket, str(paths[0]))
        await node.until(lambda: len(node.ids() or ()) == 5_000)
        await register(node.socket, str(paths[1]))
        await node.until(lambda: len(node.ids() or ()) > 5_000 or bool(node.problems().strip()))
        assert len(node.ids() or ()) == 5_000
        assert "handlers of this node with privileges report more than 5000" in node.problems()
        first.set()
        await node.until(lambda: "1-0" in (node.ids() or ()))
        await node.until(lambda: not node.problems().strip())


@pytest.mark.parametrize("patience", [3600.0, 0.02])
async def test_only_so_many_handlers_are_asked_at_once_who_have_not_answered(
    patience: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All would answer at once after a start; but who takes his time keeps nobody waiting long."""
    monkeypatch.setattr(handler_conversations, "SLOT_SECONDS", patience)
    node, told, asked = ANode(tmp_path), asyncio.Event(), asyncio.Semaphore(0)

    async def respond(
        request: v0.DiscoverRequest, context: Context
    ) -> AsyncIterator[v0.DiscoverResponse]:
        asked.release()
        await told.wait()
        yield answer()
        await asyncio.Event().wait()

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running(node.run()))
        for path in (tmp_path / f"{number}.sock" for number in range(3)):
            await stack.enter_async_context(foreign(path, respond))
            await register(node.socket, str(path))
        await node.until_state(*[HandlerState.ACTIVE] * 3)
        async with asyncio.timeout(20):
            await asked.acquire()
            await asked.acquire()
            if patience > 1:
                assert asked.locked()
                told.set()
            await asked.acquire()


async def test_of_an_answer_that_was_read_nothing_is_kept_until_the_next(tmp_path: Path) -> None:
    """It may have 8 MiB, and the next may be days in coming."""
    path = tmp_path / "shelf.sock"

    async def respond(
        request: v0.DiscoverRequest, context: Context
    ) -> AsyncIterator[v0.DiscoverResponse]:
        yield sized(0, 1)
        await asyncio.Event().wait()

    registration = Registration(Endpoint("shelf", str(path)), network=False, shared=False)
    terms = handler_conversations.Terms(handler_conversations.AskSlots(1), 1000)
    request = v0.DiscoverRequest()
    async with foreign(path, respond):
        told = handler_conversations.discover(registration, request, lambda: None, terms)
        async with aclosing(told) as answers:
            first = await anext(answers)
            async with running(anext(answers)):
                assert sys.getrefcount(first) == 2, "ours, and that of the question"


def on_disk(folder: Path) -> list[tuple[Registration, int]]:
    found = load(Folder(folder / "data").read(FILE) or b"")
    return [(r.registration, r.runs) for r in found]


async def asked_by_the_next(folder: Path, registration: Registration) -> bool:
    """Whether a driver asks it that starts now; it is killed at once."""
    node = ANode(folder, limits=LIMITS)
    return not node.external.table[registration.endpoint].on_hold


async def test_a_handler_without_privileges_that_ended_the_driver_is_on_hold(
    tmp_path: Path,
) -> None:
    first = ANode(tmp_path, limits=LIMITS)
    await first.external.register(camera(0), folder=NETWORK)

    assert not await asked_by_the_next(tmp_path, camera(0))


async def test_a_handler_that_ended_the_driver_three_times_is_on_hold(tmp_path: Path) -> None:
    """Not after once: one that is written for an agent that never restarts would never be back."""
    await ANode(tmp_path).external.register(SHELF)

    assert [await asked_by_the_next(tmp_path, SHELF) for _ in range(4)] == [
        True,
        True,
        False,
        False,
    ]


async def test_a_handler_is_asked_again_once_the_driver_lived_with_it_for_a_minute(
    tmp_path: Path,
) -> None:
    for _ in range(4):
        node = ANode(tmp_path, limits=LIMITS)
        async with running(node.run()):
            await node.external.register(camera(0), folder=NETWORK)
            node.now += timedelta(minutes=1)
            await register(node.socket, str(tmp_path / "nobody.sock"))
            async with asyncio.timeout(20):
                while (camera(0), 0) not in on_disk(tmp_path):  # noqa: ASYNC110  A file.
                    await asyncio.sleep(0.01)
        assert await asked_by_the_next(tmp_path, camera(0))


async def test_a_handler_on_hold_is_not_asked_and_its_devices_are_not_gone(tmp_path: Path) -> None:
    """It registers again when the driver has a new socket, and then is asked."""
    limits = HandlerLimits(network_folder=str(tmp_path))
    shelf, place = Shelf(), Place(tmp_path)
    await shelf.set("a")
    async with running(shelf.serve(place)):
        first = ANode(tmp_path, limits=limits)
        async with running(first.run()):
            await first.until_devices("a")
        asked = len(shelf.requests)

        killed = ANode(tmp_path, limits=limits)
        async with running(killed.run(serves=False)):
            await killed.until(lambda: "within a minute" in killed.problems())
            assert killed.states() == (HandlerState.OFFLINE,)
            assert killed.ids() is None
            assert len(shelf.requests) == asked

        last = ANode(tmp_path, limits=limits)
        async with running(last.run()):
            await last.until_devices("a")
            assert last.problems() == ""
