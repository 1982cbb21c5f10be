"""Discoveries: one conversation for each Configuration in force, and what was heard last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from driver.api import Configuration, ConfigurationName
from driver.devices import Device
from driver.discovery.contract import NO_PROPERTIES, Properties
from driver.handlers.handler_sources import (
    Answer,
    DiscoveryError,
    EmbeddedSource,
    Question,
    ReadProperties,
    Source,
)
from driver.instances import handler_discoveries as module
from driver.instances.handler_discoveries import Discoveries
from driver.instances.inventory import Heard
from tests.driver.builders import a_configuration, a_device

LOOP = ConfigurationName("loop")


class FakeHandler:
    """A handler whose answers the test gives."""

    name = "udev"
    problem = None

    def __init__(self) -> None:
        self.answers: asyncio.Queue[tuple[Device, ...] | Exception] = asyncio.Queue()
        self.listening = 0
        self.asked: list[Properties] = []

    def is_shared(self, details: Any) -> bool:
        return False

    async def discover(
        self, details: Any, properties: Properties = NO_PROPERTIES
    ) -> AsyncGenerator[tuple[Device, ...], None]:
        self.listening += 1
        self.asked.append(properties)
        try:
            while True:
                answer = await self.answers.get()
                if isinstance(answer, Exception):
                    raise answer
                yield answer
        finally:
            self.listening -= 1


@dataclass
class FakeHandlerSource:
    """A source whose answers the test gives."""

    key: str = "a"
    is_awaited: bool = False
    shared: bool = False
    given: asyncio.Queue[tuple[Device, ...]] = field(default_factory=asyncio.Queue)

    async def answers(
        self, name: ConfigurationName, question: Question
    ) -> AsyncGenerator[Answer, None]:
        while True:
            yield Answer(await self.given.get(), self.shared)

    async def pause(self, seconds: float) -> None:
        raise AssertionError("it never fails")


@dataclass
class FakeSources:
    """These sources, whatever handler is asked for."""

    sources: list[Source]
    removed: bool = False

    def of(self, handler: str) -> Sequence[Source]:
        return self.sources

    def was_removed(self, handler: str) -> bool:
        return self.removed


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
    *handlers: FakeHandler | FakeHandlerSource,
    sources: FakeSources | None = None,
    read: ReadProperties = lambda _: {},
) -> AsyncIterator[tuple[Discoveries, Listener]]:
    listener = Listener()
    asked: list[Source] = [EmbeddedSource(h) if isinstance(h, FakeHandler) else h for h in handlers]
    async with asyncio.TaskGroup() as tasks:
        discoveries = Discoveries(sources or FakeSources(asked), tasks, listener, read)
        yield discoveries, listener
        discoveries.follow(())


async def test_an_answer_is_kept_under_its_configuration() -> None:
    handler = FakeHandler()
    async with discovering(handler) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        assert not discoveries.complete

        handler.answers.put_nowait((a_device(),))
        await listener.wait()

        assert discoveries.heard[LOOP].local == (a_device(),)
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

        assert discoveries.heard[LOOP].local == (a_device(),)
        handler.answers.put_nowait(())
        await listener.wait()
        assert discoveries.heard[LOOP].local == ()
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

        assert discoveries.heard[LOOP].local == ()


async def test_sources_are_merged_and_the_first_that_reports_a_device_wins() -> None:
    first, second = FakeHandlerSource("a"), FakeHandlerSource("b", shared=True)
    async with discovering(first, second) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        theirs = a_device("x", properties={"FROM": "b"}), a_device("y"), a_device("y")
        second.given.put_nowait(theirs)
        await listener.wait()
        assert [d.id for d in discoveries.heard[LOOP].shared] == ["x", "y"]

        mine = a_device("x", properties={"FROM": "a"})
        first.given.put_nowait((mine,))
        await listener.wait()

        assert discoveries.heard[LOOP] == Heard("uid-of-loop", (mine,), (a_device("y"),))


async def test_nothing_is_missing_before_all_who_may_have_reported_it_have_answered() -> None:
    new, awaited = FakeHandlerSource("new"), FakeHandlerSource("old", is_awaited=True)
    async with discovering(new, awaited) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        new.given.put_nowait((a_device("x"),))
        await listener.wait()
        assert not discoveries.heard[LOOP].complete
        assert not discoveries.complete

        awaited.given.put_nowait(())
        await listener.wait()
        assert discoveries.heard[LOOP].complete
        assert discoveries.complete


async def test_the_devices_of_a_source_that_is_removed_are_gone() -> None:
    kept, leaving = FakeHandlerSource("a"), FakeHandlerSource("b")
    sources = FakeSources([kept, leaving])
    async with discovering(sources=sources) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        kept.given.put_nowait((a_device("x"),))
        await listener.wait()
        leaving.given.put_nowait((a_device("y"),))
        await listener.wait()

        sources.sources.remove(leaving)
        discoveries.follow([a_configuration()])
        assert [d.id for d in discoveries.heard[LOOP].local] == ["x"]

        sources.sources.remove(kept)
        sources.removed = True
        discoveries.follow([a_configuration()])
        assert discoveries.heard[LOOP] == Heard("uid-of-loop")


async def test_a_configuration_without_a_source_is_not_heard_and_not_waited_for() -> None:
    sources = FakeSources([])
    async with discovering(sources=sources) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        assert discoveries.heard == {}
        assert discoveries.complete

        late = FakeHandlerSource()
        sources.sources.append(late)
        discoveries.follow([a_configuration()])
        late.given.put_nowait((a_device(),))
        await listener.wait()
        assert discoveries.heard[LOOP].local == (a_device(),)


async def test_a_recreated_configuration_asks_anew_and_has_nothing_of_the_old_one() -> None:
    source = FakeHandlerSource()
    async with discovering(source) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        source.given.put_nowait((a_device(),))
        await listener.wait()

        discoveries.follow([a_configuration(uid="new")])
        assert discoveries.heard == {}

        source.given.put_nowait(())
        await listener.wait()
        assert discoveries.heard[LOOP] == Heard("new")


@dataclass
class FakeProperties:
    """Properties that the test sets; None while they cannot be read."""

    now: Properties | None = None

    def read(self, _: Configuration) -> Properties | None:
        return self.now


async def test_nobody_is_asked_before_the_properties_are_read() -> None:
    handler, properties = FakeHandler(), FakeProperties()
    async with discovering(handler, read=properties.read) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        assert not discoveries.complete
        assert discoveries.heard == {}

        properties.now = {"password": b"x"}
        discoveries.follow([a_configuration()])
        handler.answers.put_nowait(())
        await listener.wait()

        assert discoveries.complete
        assert handler.asked == [properties.now]


async def test_another_value_asks_anew_and_while_there_is_none_the_last_question_stays() -> None:
    handler, properties = FakeHandler(), FakeProperties({"password": b"old"})
    async with discovering(handler, read=properties.read) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        handler.answers.put_nowait((a_device(),))
        await listener.wait()

        properties.now = None
        discoveries.follow([a_configuration()])
        handler.answers.put_nowait((a_device("x"),))
        await listener.wait()
        assert [d.id for d in discoveries.heard[LOOP].local] == ["x"]
        assert discoveries.complete

        properties.now = {"password": b"new"}
        discoveries.follow([a_configuration()])
        assert [d.id for d in discoveries.heard[LOOP].local] == ["x"]
        handler.answers.put_nowait(())
        await listener.wait()
        assert handler.asked == [{"password": b"old"}, {"password": b"new"}]
        assert handler.listening == 1


async def test_a_recreated_configuration_does_not_take_over_the_last_question() -> None:
    handler, properties = FakeHandler(), FakeProperties({})
    async with discovering(handler, read=properties.read) as (discoveries, listener):
        discoveries.follow([a_configuration()])
        handler.answers.put_nowait((a_device(),))
        await listener.wait()

        properties.now = None
        discoveries.follow([a_configuration(uid="new")])

        assert discoveries.heard == {}
        assert not discoveries.complete


async def test_a_source_that_answers_and_breaks_off_is_asked_less_and_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures: list[int] = []

    class Counting:
        def delay(self, count: int, uniform: object) -> float:
            failures.append(count)
            return 0

    @dataclass
    class Breaking(FakeHandlerSource):
        enough: asyncio.Event = field(default_factory=asyncio.Event)

        async def answers(
            self, name: ConfigurationName, question: Question
        ) -> AsyncGenerator[Answer, None]:
            yield Answer((), self.shared)
            raise DiscoveryError("That was all.")

        async def pause(self, seconds: float) -> None:
            if len(failures) == 3:
                self.enough.set()
                await asyncio.Event().wait()

    monkeypatch.setattr(module, "_BACKOFF", Counting())
    source = Breaking()
    async with discovering(source) as (discoveries, _), asyncio.timeout(10):
        discoveries.follow([a_configuration()])
        await source.enough.wait()

    assert failures == [1, 2, 3]
