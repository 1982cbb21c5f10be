"""Secrets and ConfigMaps of a node: which are watched, and what is known while they cannot be."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from driver.api import Configuration, ValueReference
from driver.handlers.properties import apiserver_properties as module
from driver.handlers.properties.apiserver_properties import MOST_OBJECTS, NodeProperties
from kube.backoff import Backoff
from kube.calls.api import (
    ApiClient,
    ApiError,
    ForbiddenError,
    GoneError,
    ServerFaultError,
    UnauthorizedError,
    UnavailableError,
)
from kube.calls.apiserver_reads import Page
from kube.calls.frames import Frame
from kube.resources import Selection
from tests.driver.builders import a_configuration

FORBIDDEN = ForbiddenError("secrets is forbidden", status=403, reason="Forbidden")


class FakeSecrets:
    """Secrets of the namespace `default` behind a door that may be shut."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.error: ApiError | None = None
        self.watched: list[str] = []
        self.refused = 0
        self._version = 1
        self._cut = asyncio.Event()

    def write(self, name: str, value: str | None) -> None:
        """A new value, which all that watch learn from a new list."""
        self._version += 1
        self.secrets.pop(name, None)
        if value is not None:
            self.secrets[name] = value
        self.cut()

    def cut(self) -> None:
        """End all watches; what comes next is a list."""
        self._cut.set()
        self._cut = asyncio.Event()

    def _refuse(self) -> None:
        if self.error:
            self.refused += 1
            raise self.error

    async def current_version(self, selection: Selection) -> int:
        self._refuse()
        return self._version

    async def pages(self, selection: Selection, **_: Any) -> AsyncIterator[Page]:
        self._refuse()
        name = selection.field_selector.removeprefix("metadata.name=")
        yield Page((self._body(name),) if name in self.secrets else (), self._version, "")

    @asynccontextmanager
    async def watch(
        self, selection: Selection, resource_version: int, **_: Any
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        self._refuse()
        self.watched.append(str(selection))
        try:
            yield self._silence(resource_version)
        finally:
            self.watched.remove(str(selection))

    async def _silence(self, version: int) -> AsyncIterator[Frame]:
        if version == self._version:
            await self._cut.wait()
        raise GoneError("too old", status=410)
        yield

    def _body(self, name: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "default", "uid": name}
        metadata["resourceVersion"] = str(self._version)
        value = base64.b64encode(self.secrets[name].encode()).decode()
        return {"metadata": metadata, "data": {"password": value}}


async def eventually(condition: Callable[[], object]) -> None:
    """Wait for what nobody is told of."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  Nobody tells.
            await asyncio.sleep(0)


class World:
    """A node's properties, and the API server."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.api = FakeSecrets()
        self.properties = NodeProperties(cast(ApiClient, self.api), tasks)
        self.followed: tuple[Configuration, ...] = ()
        self._changed = asyncio.Event()
        self.properties.on_change(self._changed.set)

    def follow(self, *configurations: Configuration) -> None:
        self.followed = configurations
        self.properties.follow(configurations)

    async def until_read(self, configuration: Configuration, **values: bytes) -> None:
        await self.until(lambda: self.properties.read(configuration) == values)

    async def until_told(self, configuration: Configuration, words: str) -> None:
        await self.until(lambda: words in str(self.properties.problems(configuration)))

    async def until(self, condition: Callable[[], object]) -> None:
        """Look again at each change, as the driver does."""
        async with asyncio.timeout(10):
            while not condition():
                await self._changed.wait()
                self._changed.clear()
                self.follow(*self.followed)

    async def until_refused_again(self, times: int) -> None:
        wanted = self.api.refused + times
        await eventually(lambda: self.api.refused >= wanted)


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    async with asyncio.TaskGroup() as tasks:
        yield (world := World(tasks))
        world.follow()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BACKOFF", Backoff(first_seconds=0.001, cap_seconds=0.001))


def asking(name: str, *secrets: str, optional: bool = False) -> Configuration:
    """A Configuration that asks for the password of each of these Secrets, by its name."""
    references = {
        secret: ValueReference(
            kind="Secret", namespace="default", name=secret, key="password", optional=optional
        )
        for secret in secrets
    }
    return a_configuration(name, discovery_properties=references)


async def test_a_secret_is_read_read_again_and_forgotten() -> None:
    asked = asking("loop", "cam")
    async with a_world() as world:
        world.api.write("cam", "old")
        world.follow(asked)
        assert world.properties.read(asked) is None
        await world.until_read(asked, cam=b"old")

        world.api.write("cam", "new")
        await world.until_read(asked, cam=b"new")

        world.api.write("cam", None)
        await world.until_told(asked, "Secret default/cam does not exist")
        assert world.properties.read(asked) is None

        world.api.write("cam", "again")
        await world.until_read(asked, cam=b"again")
        assert world.properties.problems(asked) == ()

        world.follow()
        assert world.properties.read(asked) is None
        await eventually(lambda: not world.api.watched)


async def test_what_two_configurations_name_is_watched_once_until_none_does() -> None:
    one, two = asking("one", "cam"), asking("two", "cam", "door")
    async with a_world() as world:
        world.api.write("cam", "x")
        world.api.write("door", "y")
        world.follow(one, two)
        await world.until_read(two, cam=b"x", door=b"y")
        await eventually(lambda: len(world.api.watched) == 2)

        world.follow(one)
        assert world.properties.read(one) == {"cam": b"x"}
        await eventually(lambda: len(world.api.watched) == 1)


async def test_a_permission_that_is_missing_is_told_once_and_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = asking("loop", "cam", optional=True)
    async with a_world() as world:
        world.api.error = FORBIDDEN
        world.follow(asked)
        await world.until_told(asked, "The driver may not read Secret default/cam")
        assert world.properties.read(asked) is None
        await world.until_refused_again(20)
        world.follow(asked)

        world.api.error = None
        world.api.write("cam", "x")
        await world.until_read(asked, cam=b"x")
        assert world.properties.problems(asked) == ()

    said = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert [r.name for r in said] == ["driver.handlers.properties.apiserver_properties"]
    assert "may not read" in said[0].message


async def test_while_the_api_server_is_away_nothing_is_forgotten_or_told() -> None:
    asked, late = asking("loop", "cam"), asking("late", "door")
    async with a_world() as world:
        world.api.write("cam", "x")
        world.follow(asked)
        await world.until_read(asked, cam=b"x")

        world.api.error = UnavailableError("away")
        world.api.cut()
        world.follow(asked, late)
        await world.until_refused_again(20)
        assert world.properties.read(asked) == {"cam": b"x"}
        assert world.properties.read(late) is None
        assert world.properties.problems(asked) == world.properties.problems(late) == ()

        world.api.error = None
        world.api.write("door", "y")
        await world.until_read(late, door=b"y")


@pytest.mark.parametrize(
    "error",
    [
        UnauthorizedError("Unauthorized", status=401, reason="Unauthorized"),
        ServerFaultError("etcd", status=500, reason="InternalError"),
    ],
)
async def test_what_is_no_outage_is_told_for_what_it_is(error: ApiError) -> None:
    """Neither credentials that are not accepted nor a fault of the server are a missing right."""
    asked = asking("loop", "cam")
    async with a_world() as world:
        world.api.error = error
        world.follow(asked)
        await eventually(lambda: world.properties.problems(asked))
        said = str(world.properties.problems(asked))
        assert f"cannot be read: {error}." in said
        assert "may not read" not in said

        world.api.error = None
        world.api.write("cam", "x")
        await world.until_read(asked, cam=b"x")
        assert world.properties.problems(asked) == ()


async def test_a_permission_that_is_taken_away_is_told_and_the_value_stays() -> None:
    asked = asking("loop", "cam")
    async with a_world() as world:
        world.api.write("cam", "x")
        world.follow(asked)
        await world.until_read(asked, cam=b"x")

        world.api.error = FORBIDDEN
        world.api.cut()
        await world.until_refused_again(20)

        assert world.properties.read(asked) == {"cam": b"x"}
        assert "may not read" in str(world.properties.problems(asked))

        world.api.error = None
        world.api.write("cam", "y")
        await world.until_read(asked, cam=b"y")
        await eventually(lambda: not world.properties.problems(asked))


async def test_no_more_is_watched_than_there_are_connections_for() -> None:
    many = asking("many", *(f"s{n:03}" for n in range(MOST_OBJECTS + 1)))
    other = asking("other", "zzz")
    async with a_world() as world:
        for name in (*many.discovery_properties, *other.discovery_properties):
            world.api.write(name, "x")
        world.follow(many)
        await eventually(lambda: len(world.api.watched) == MOST_OBJECTS)
        assert world.properties.read(many) is None
        assert world.properties.problems(many) == (
            f"Secret default/s{MOST_OBJECTS:03} is not read: a node reads 50 objects at most.",
        )

        world.follow(many, other)
        assert "zzz is not read" in str(world.properties.problems(other))

        world.follow(other)
        await world.until_read(other, zzz=b"x")
