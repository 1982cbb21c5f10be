"""Discoveries: one conversation for each Configuration in force, and what was heard last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from driver.api import Configuration, ConfigurationName
from driver.devices import Device
from driver.discoveries import Discoveries
from tests.driver.builders import a_configuration, a_device

LOOP = ConfigurationName("loop")


class FakeHandler:
    """A handler whose answers the test gives."""

    name = "udev"
    problem = None

    def __init__(self) -> None:
        self.answers: asyncio.Queue[tuple[Device, ...] | Exception] = asyncio.Queue()
        self.listening = 0

    def is_shared(self, details: Any) -> bool:
        return False

    async def discover(self, details: Any) -> AsyncGenerator[tuple[Device, ...], None]:
        self.listening += 1
        try:
            while True:
                answer = await self.answers.get()
                if isinstance(answer, Exception):
                    raise answer
                yield answer
        finally:
            self.listening -= 1


class FakeHandlers:
    """Has one handler, whatever it is asked for."""

    def __init__(self, handler: FakeHandler) -> None:
        self._handler = handler

    def named(self, name: str) -> FakeHandler:
        return self._handler


class Listener:
    """Waits for answers."""

    def __init__(self) -> None:
        self._heard = asyncio.Queue[None]()

    def __call__(self) -> None:
        self._heard.put_nowait(None)

    async def wait(self) -> None:
        async with asyncio.timeout(10):
            await self._heard.get()


@asynccontextmanager
async def discovering(
    handler: FakeHandler,
) -> AsyncIterator[tuple[Discoveries, Listener]]:
    listener = Listener()
    async with asyncio.TaskGroup() as tasks:
        discoveries = Discoveries(FakeHandlers(handler), tasks, listener)
        yield discoveries, listener
        discoveries.follow(())


async def test_an_answer_is_kept_under_its_configuration() -> None:
    handler = FakeHandler()
    async with discovering(handler) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        assert not discoveries.complete

        handler.answers.put_nowait((a_device(),))
        await listener.wait()

        assert discoveries.heard[LOOP].devices == (a_device(),)
        assert discoveries.complete


async def test_nothing_to_follow_is_complete() -> None:
    async with discovering(FakeHandler()) as (discoveries, _):
        discoveries.follow(())

        assert discoveries.complete


async def test_an_edit_of_the_details_asks_anew_and_keeps_the_old_answer_until_then() -> None:
    handler = FakeHandler()
    async with discovering(handler) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        handler.answers.put_nowait((a_device(),))
        await listener.wait()

        discoveries.follow([a_configuration(discovery_details='udevRules: [KERNEL=="x"]')])

        assert discoveries.heard[LOOP].devices == (a_device(),)
        handler.answers.put_nowait(())
        await listener.wait()
        assert discoveries.heard[LOOP].devices == ()
        assert handler.listening == 1


async def test_an_edit_of_the_capacity_does_not_disturb_the_handler() -> None:
    handler = FakeHandler()
    async with discovering(handler) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        handler.answers.put_nowait(())
        await listener.wait()
        followed: list[Configuration] = [a_configuration(capacity=5)]

        discoveries.follow(followed)
        handler.answers.put_nowait((a_device(),))
        await listener.wait()

        assert handler.listening == 1


async def test_a_configuration_that_is_gone_is_forgotten() -> None:
    handler = FakeHandler()
    async with discovering(handler) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        handler.answers.put_nowait((a_device(),))
        await listener.wait()

        discoveries.follow(())

        assert discoveries.heard == {}


async def test_a_handler_that_fails_is_asked_again_and_what_it_said_stays_true() -> None:
    handler = FakeHandler()
    async with discovering(handler) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        handler.answers.put_nowait((a_device(),))
        await listener.wait()

        handler.answers.put_nowait(OSError("no netlink"))
        handler.answers.put_nowait(())
        await listener.wait()

        assert discoveries.heard[LOOP].devices == ()
