"""What nodes write about their handlers: when, what, and what if the API server will not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from driver.api import ConfigurationName
from driver.configurations.configurations import Verdict, judge
from driver.handlers.registrations import HandlerState
from driver.handlers.status_entries import Report
from driver.running.node import node_handlers
from driver.running.node.node_handlers import TIMES, NodeHandlers, Reporter, Times
from kube.calls.api import (
    ApiClient,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    UnauthorizedError,
    UnavailableError,
)
from kube.stores.api import Store
from tests.driver.builders import NODE, NOW, a_configuration_object

WAITING, ACTIVE, OFFLINE = HandlerState

FIELD = "failed to create typed patch object: .status.nodes[0].devicesComplete"


class FakeSources:
    """One handler, whose report the test sets."""

    def __init__(self) -> None:
        self.report = [Report(OFFLINE, NOW, "Gone.")]

    def reports(self, handler: str, name: ConfigurationName) -> list[Report]:
        return self.report


class FakeConfigurations:
    """A store of Configurations, and a client that writes their status or fails to."""

    def __init__(self) -> None:
        self.objects = {"shelf": a_configuration_object("shelf")}
        self.writes: list[Any] = []
        self.error: Exception | None = None
        self.keeps = True
        self.has_field = True

    def __iter__(self) -> Iterator[Verdict]:
        for body in self.objects.values():
            yield judge(body, lambda *_: (), unique_devices_default=True)

    def note(self, body: Mapping[str, Any]) -> None:
        self.objects[body["metadata"]["name"]] = dict(body)

    async def apply(self, path: object, body: Any, **options: Any) -> Mapping[str, Any]:
        assert options["options"].field_manager == f"moorage.dev/{NODE}"
        self.writes.append(body.get("status"))
        if self.error:
            raise self.error
        if not self.has_field and "devicesComplete" in str(body):
            raise ApiError(f"{FIELD}: field not declared in schema", status=500)
        stored = self.objects[body["metadata"]["name"]]
        return {**stored, "status": body.get("status", {})} if self.keeps else stored


ENTRY = {
    "name": NODE,
    "handler": "Offline",
    "since": "2026-11-21T12:00:00Z",
    "message": "Gone.",
    "devicesComplete": False,
}


class World:
    """A node's handlers and the API server."""

    def __init__(self, rivals: tuple[str, ...] = (), unread: tuple[str, ...] = ()) -> None:
        self.api, self.sources = FakeConfigurations(), FakeSources()
        self._handlers = NodeHandlers(
            cast(ApiClient, self.api),
            NODE,
            Reporter(self.sources.reports, lambda _: unread, lambda _: (), lambda _: rivals),
            cast("Store[Verdict]", self.api),
        )

    async def look(self) -> float:
        return (await self._handlers.reconcile()).seconds


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_handlers, "TIMES", Times(settle=0))


async def test_what_has_not_stood_for_a_while_is_not_told() -> None:
    world = World()

    assert await world.look() == TIMES.settle
    assert 0 < await world.look() <= TIMES.settle
    world.sources.report = [Report(ACTIVE)]
    assert await world.look() == TIMES.look
    assert world.api.writes == []


@pytest.mark.usefixtures("settled")
async def test_what_stands_is_told_once_and_taken_back_at_once() -> None:
    world = World()
    for _ in range(3):
        await world.look()
    assert world.api.writes == [{"nodes": [ENTRY]}]

    world.sources.report = [Report(ACTIVE)]
    for _ in range(3):
        await world.look()
    assert world.api.writes[1:] == [None]


@pytest.mark.usefixtures("settled")
async def test_devices_that_are_another_configurations_too_are_told_and_marked() -> None:
    world = World(rivals=("The device is theirs, too.",))
    world.sources.report = [Report(ACTIVE)]
    for _ in range(2):
        await world.look()

    told = {"name": NODE, "handler": "Active", "message": "The device is theirs, too."}
    assert world.api.writes == [{"nodes": [{**told, "devicesDistinct": False}]}]


@pytest.mark.usefixtures("settled")
async def test_properties_that_are_not_read_are_told_and_marked() -> None:
    world = World(unread=("Secret a/b is not read.",))
    world.sources.report = [Report(ACTIVE)]
    for _ in range(2):
        await world.look()

    told = {"name": NODE, "handler": "Active", "message": "Secret a/b is not read."}
    assert world.api.writes == [{"nodes": [{**told, "propertiesRead": False}]}]


@pytest.mark.usefixtures("settled")
async def test_what_a_predecessor_told_is_taken_back() -> None:
    world = World()
    world.sources.report = [Report(ACTIVE)]
    others = {"name": "node-b", "handler": "Waiting"}
    world.api.objects["shelf"]["status"] = {"nodes": [ENTRY, others]}

    await world.look()

    assert world.api.writes == [None]


@pytest.mark.usefixtures("settled")
async def test_what_the_api_server_does_not_keep_is_not_written_for_ever() -> None:
    world = World()
    world.api.keeps = False
    for _ in range(4):
        await world.look()

    assert len(world.api.writes) == 1


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("error", [ForbiddenError("no"), InvalidError("no")])
async def test_a_refusal_is_taken(error: Exception) -> None:
    world = World()
    world.api.error = error
    for _ in range(4):
        await world.look()

    assert len(world.api.writes) == 1


@pytest.mark.usefixtures("settled")
async def test_beside_an_older_definition_entries_go_without_the_field_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.api.objects["other"] = a_configuration_object("other")
    world.api.objects["other"]["metadata"]["uid"] = "other"
    world.api.has_field = False
    monkeypatch.setattr(node_handlers, "TIMES", Times(settle=0, plain=0.2))
    plain = {name: value for name, value in ENTRY.items() if name != "devicesComplete"}
    for _ in range(3):
        await world.look()
    assert world.api.writes == [{"nodes": [ENTRY]}] * 2 + [{"nodes": [plain]}] * 2

    world.api.has_field = True
    await asyncio.sleep(0.3)
    for _ in range(3):
        await world.look()
    assert world.api.writes[4:] == [{"nodes": [ENTRY]}] * 2


@pytest.mark.usefixtures("settled")
async def test_other_failures_are_tried_again() -> None:
    world = World()
    world.api.error = ConflictError("changed")
    await world.look()
    errors = (UnavailableError("away"), UnauthorizedError("a token that ran out"))
    for world.api.error in errors:
        with pytest.raises(type(world.api.error)):
            await world.look()
    world.api.error = None
    await world.look()
    await world.look()

    assert len(world.api.writes) == 4


@pytest.mark.usefixtures("settled")
async def test_a_configuration_that_is_not_in_force_has_nothing_told() -> None:
    world = World()
    broken = a_configuration_object("shelf", capacity=0)
    younger = a_configuration_object("shelf")
    younger["metadata"] |= {"uid": "younger", "creationTimestamp": "2026-11-21T12:00:00Z"}
    world.api.objects = {"shelf": broken, "younger": younger}
    for _ in range(3):
        await world.look()

    assert world.api.writes == []
