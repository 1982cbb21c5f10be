"""Discovery handlers of other processes, over real sockets: they come, fail, lie and return."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from driver.devices import Device
from driver.discovery.handlers import Handlers, HandlerSettings
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers import registration_socket, sdk
from driver.handlers.external_handlers import FILE, ExternalHandlers
from driver.handlers.registrations import Endpoint, HandlerState, Registration, Remembered
from driver.handlers.remembered import load, load_removed
from driver.handlers.report_limits import HandlerLimits
from driver.handlers.sdk import serve
from driver.handlers.sdk_requests import Handler, Place
from driver.handlers.table import REMOVED_AFTER
from driver.instances import handler_discoveries as discoveries
from driver.instances.inventory import Heard
from driver.plumbing.disk import Folder
from driver.running import handler_main
from driver.running.handler_main import through_sdk
from kube.backoff import Backoff
from tests.driver.builders import a_configuration
from tests.driver.handler_nodes import (
    SHELF,
    ANode,
    Context,
    Shelf,
    a_shelf,
    answer,
    devices,
    foreign,
    register,
    running,
)

WAITING, ACTIVE, OFFLINE = HandlerState
NETWORK = v0.RegisterDiscoveryHandlerRequest.NETWORK


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration_socket, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sdk, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sdk, "GRACE_SECONDS", 0)
    monkeypatch.setattr(discoveries, "_BACKOFF", Backoff(0.02, 0.1))


async def forever(*responses: v0.DiscoverResponse) -> AsyncIterator[v0.DiscoverResponse]:
    for response in responses:
        yield response
    await asyncio.Event().wait()


async def test_a_handler_that_registers_late_serves_what_has_waited(tmp_path: Path) -> None:
    node, shelf = ANode(tmp_path), Shelf()
    await shelf.set("b", "a")
    async with running(node.run()):
        assert node.states() == ()
        assert node.discoveries.heard == {}

        async with running(shelf.serve(Place(tmp_path), shared=True)):
            await node.until_devices("a", "b")
            assert node.states() == (ACTIVE,)
            assert [d.properties for d in node.heard.shared] == [{"PLACE": "a"}, {"PLACE": "b"}]
            await shelf.set("c")
            await node.until_devices("c")


async def test_a_handler_that_dies_is_offline_and_its_devices_stay(tmp_path: Path) -> None:
    node, shelf = ANode(tmp_path), Shelf()
    await shelf.set("a")
    async with running(node.run()):
        async with running(shelf.serve(Place(tmp_path))):
            await node.until_devices("a")
            before = node.heard
        await node.until_state(OFFLINE)
        assert node.heard == before

        async with running(shelf.serve(Place(tmp_path))):
            await node.until_state(ACTIVE)
            assert node.heard == before


async def test_after_five_minutes_offline_its_devices_are_gone(tmp_path: Path) -> None:
    node, shelf = ANode(tmp_path), Shelf()
    await shelf.set("a")
    async with running(node.run()):
        async with running(shelf.serve(Place(tmp_path))):
            await node.until_devices("a")
        await node.until_state(OFFLINE)
        node.now += REMOVED_AFTER - timedelta(seconds=1)
        await register(node.socket, str(tmp_path / "nobody.sock"))
        await node.until_state(OFFLINE, OFFLINE)

        node.now += timedelta(seconds=1)
        await node.until(lambda: node.heard == Heard("uid-of-shelf"))
        assert [s.key for s in node.sources.of("shelf")] == [str(tmp_path / "nobody.sock")]

        async with running(shelf.serve(Place(tmp_path))):
            await node.until_devices("a")


async def serve_until_removed(node: ANode, shelf: Shelf) -> None:
    """A handler reports a device, and is away for so long that it is removed."""
    async with running(shelf.serve(Place(node.folder))):
        await node.until_devices("a")
    await node.until_state(OFFLINE)
    node.now += REMOVED_AFTER
    await register(node.socket, str(node.folder / "nobody.sock"), name="rack")
    await node.until_devices()


async def test_a_handler_that_is_back_after_that_is_waited_for_again(tmp_path: Path) -> None:
    """Its Configuration names another for a moment: what it reported is not gone by that."""
    node, shelf = ANode(tmp_path), Shelf()
    await shelf.set("a")
    async with running(node.run()):
        await serve_until_removed(node, shelf)

        async with running(shelf.serve(Place(tmp_path))):
            await node.until_devices("a")
            other = a_configuration("attic", handler="shelf")
            node.configurations = [a_configuration("shelf", handler="rack"), other]
            node.follow()
            node.configurations = [a_shelf()]
            node.follow()
            assert node.ids() is None
            await node.until_devices("a")


async def test_a_restarted_driver_knows_whose_devices_are_gone(tmp_path: Path) -> None:
    first, shelf = ANode(tmp_path), Shelf()
    await shelf.set("a")
    async with running(first.run()):
        await serve_until_removed(first, shelf)
        async with asyncio.timeout(20):
            # Killed before it is written down, the next start would wait once more.
            while load_removed((tmp_path / "data" / FILE).read_bytes()) != {"shelf"}:  # noqa: ASYNC110  A file.
                await asyncio.sleep(0.01)

    again = ANode(tmp_path)
    async with running(again.run(serves=False)):
        assert again.heard == Heard("uid-of-shelf")


async def test_a_handler_that_does_not_wait_for_the_disk_is_registered(tmp_path: Path) -> None:
    writes, may_write = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    class SlowFolder(Folder):
        def write(self, name: str, content: bytes) -> None:
            loop.call_soon_threadsafe(writes.set)
            may_write.wait()
            super().write(name, content)

    folder, told = SlowFolder(tmp_path), asyncio.Event()
    handlers = ExternalHandlers(folder)
    handlers.on_change(told.set)
    registration = Registration(Endpoint("shelf", "/a.sock"), network=False, shared=False)
    async with asyncio.timeout(20):
        async with running(handlers.register(registration)):
            await writes.wait()
        may_write.set()
        await told.wait()
    assert load(folder.read(FILE) or b"") == (Remembered(registration, 1),)


async def test_a_table_that_could_not_be_written_down_is_written_with_the_next_change(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").touch()
    handlers = ExternalHandlers(Folder(tmp_path / "data"))
    registration = Registration(Endpoint("shelf", "/a.sock"), network=False, shared=False)
    await handlers.register(registration)
    (tmp_path / "data").unlink()

    await handlers.register(registration)
    assert load(Folder(tmp_path / "data").read(FILE) or b"") == (Remembered(registration, 1),)


async def test_a_restarted_driver_asks_the_handlers_that_it_knew(tmp_path: Path) -> None:
    shelf = Shelf()
    await shelf.set("a")
    async with running(shelf.serve(Place(tmp_path))):
        first = ANode(tmp_path)
        async with running(first.run()):
            await first.until_devices("a")

        again = ANode(tmp_path)
        async with running(again.run(serves=False)):
            await again.until_devices("a")
            assert again.heard.complete


async def test_a_restarted_driver_takes_nothing_for_gone_before_all_have_answered(
    tmp_path: Path,
) -> None:
    shelf, other = Shelf(), tmp_path / "other.sock"
    await shelf.set("a")
    first = ANode(tmp_path)
    async with running(shelf.serve(Place(tmp_path))):
        async with running(first.run()), foreign(other, lambda r, c: forever(answer())):
            await register(first.socket, str(other))
            await first.until_state(ACTIVE, ACTIVE)
            await first.until(lambda: first.ids() == ["a"] and first.heard.complete)

        again = ANode(tmp_path)
        async with running(again.run()):
            await again.until_devices("a")
            await again.until(lambda: OFFLINE in again.states())
            assert not again.heard.complete

            async with foreign(other, lambda r, c: forever(answer(*devices("x")))):
                await register(again.socket, str(other))
                await again.until(lambda: again.heard.complete)
                assert again.ids() == ["x", "a"]


async def test_a_handler_registers_again_with_an_agent_that_has_forgotten_it(
    tmp_path: Path,
) -> None:
    shelf = Shelf()
    async with running(shelf.serve(Place(tmp_path))):
        for _ in range(2):
            node = ANode(tmp_path)
            async with running(node.run()):
                await node.until_devices()
                await node.until_state(ACTIVE)
            (tmp_path / "data" / "handlers.json").unlink()


async def test_a_conversation_that_ends_while_the_handler_registers_has_it_register_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent may have forgotten it just after it took the registration."""
    services: list[sdk.Service] = []
    registrations = asyncio.Semaphore(0)

    class Noted(sdk.Service):
        def __init__(self, handler: Handler) -> None:
            super().__init__(handler)
            services.append(self)

    async def forget(_: Registration) -> None:
        if registrations.locked():
            services[0].ended.set()
        registrations.release()

    monkeypatch.setattr(sdk, "Service", Noted)
    agent = registration_socket.RegistrationSocket(Place(tmp_path).agent_socket, forget)
    async with running(agent.serve()), running(Shelf().serve(Place(tmp_path))):
        async with asyncio.timeout(20):
            await registrations.acquire()
            await registrations.acquire()


async def test_a_handler_waits_when_its_last_configuration_goes(tmp_path: Path) -> None:
    node, shelf = ANode(tmp_path), Shelf()
    async with running(node.run()), running(shelf.serve(Place(tmp_path))):
        await node.until_devices()
        node.configurations = []
        node.follow()
        assert node.states() == (WAITING,)

        node.configurations = [a_shelf("again")]
        node.follow()
        await node.until_devices()
        assert node.states() == (ACTIVE,)
        assert [r.details for r in shelf.requests] == ["", "again"]


async def test_handlers_are_reached_over_the_network(tmp_path: Path) -> None:
    node, shelf = ANode(tmp_path), Shelf()
    await shelf.set("camera")
    place = Place(tmp_path, "127.0.0.1:23817")
    async with running(node.run()), running(shelf.serve(place)):
        await node.until_devices("camera")
        assert [s.key for s in node.sources.of("shelf")] == ["127.0.0.1:23817"]


async def test_properties_are_handed_on_and_a_change_asks_anew(tmp_path: Path) -> None:
    node, shelf = ANode(tmp_path), Shelf()
    node.properties = lambda c: {"password": b"\xff\0", "none": None}
    async with running(node.run()), running(shelf.serve(Place(tmp_path))):
        await node.until_state(ACTIVE)
        await node.until_devices()
        assert shelf.requests[-1].properties == {"password": b"\xff\0", "none": None}

        node.properties = lambda c: {"password": b"new"}
        node.follow()
        await node.until(lambda: len(shelf.requests) == 2)
        assert shelf.requests[-1].properties == {"password": b"new"}
        node.properties = lambda c: None
        node.follow()
        assert node.states() == (ACTIVE,)


async def test_a_stream_that_crashes_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    node, path = ANode(tmp_path), tmp_path / "shelf.sock"
    calls = 0

    async def respond(
        request: v0.DiscoverRequest, context: Context
    ) -> AsyncIterator[v0.DiscoverResponse]:
        nonlocal calls
        calls += 1
        yield answer(*devices(["a", "b"] if calls < 3 else ["b"]))
        if calls < 3:
            raise RuntimeError("a bug of the handler's")
        await asyncio.Event().wait()

    async with running(node.run()), foreign(path, respond):
        await register(node.socket, str(path))
        await node.until_devices("a", "b")
        await node.until_devices("b")
        assert calls == 3
        assert node.states() == (ACTIVE,)


async def test_a_refusal_is_told_and_does_not_make_the_handler_offline(tmp_path: Path) -> None:
    node, path = ANode(tmp_path), tmp_path / "shelf.sock"

    async def respond(
        request: v0.DiscoverRequest, context: Context
    ) -> AsyncIterator[v0.DiscoverResponse]:
        if request.discovery_details == "bad":
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "which\nshelf?")
        yield answer(*devices("a"))
        await asyncio.Event().wait()

    node.configurations = [a_shelf("bad")]
    async with running(node.run()), foreign(path, respond):
        await register(node.socket, str(path))
        await node.until(lambda: node.problems() == "INVALID_ARGUMENT: which shelf?")
        assert node.states() == (ACTIVE,)

        node.configurations = [a_shelf("good")]
        node.follow()
        await node.until_devices("a")
        await node.until(lambda: node.problems() == "")


async def test_an_answer_that_is_too_large_is_told(tmp_path: Path) -> None:
    """With the handler's name and the limit, not in gRPC's words."""
    node, path = ANode(tmp_path), tmp_path / "shelf.sock"
    huge = answer(*devices("a"), v0.Device(id="b" * (50 << 20)))
    async with running(node.run()), foreign(path, lambda r, c: forever(huge)):
        await register(node.socket, str(path))
        await node.until(lambda: node.problems() != "")
        assert node.problems() == (
            'Handler "shelf" answered with more than 8 MiB; its earlier answer stays in force, and'
            " it must report fewer devices, or shorter properties."
        )
        assert node.states() == (ACTIVE,)


async def test_a_handler_that_takes_a_question_for_too_large_is_quoted(tmp_path: Path) -> None:
    node, path = ANode(tmp_path), tmp_path / "shelf.sock"
    node.configurations = [a_shelf("x" * (5 << 20))]
    async with running(node.run()), foreign(path, lambda r, c: forever(answer())):
        await register(node.socket, str(path))
        await node.until(lambda: node.problems() != "")
        assert "RESOURCE_EXHAUSTED: SERVER: Received message larger than max" in node.problems()


async def test_ten_thousand_devices_and_ids_of_a_megabyte_are_taken(tmp_path: Path) -> None:
    node = ANode(tmp_path, limits=HandlerLimits(most_devices=10_003, node_devices=20_000))
    path = tmp_path / "shelf.sock"
    ids = [*(f"{n:05}" for n in range(10_000)), "x" * (1 << 20)]
    many = answer(*devices([*ids, "00007"]), v0.Device())
    async with running(node.run()), foreign(path, lambda r, c: forever(many)):
        await register(node.socket, str(path))
        await node.until_devices(*ids)
        await node.until(lambda: "comes twice" in node.problems())
        assert "without an id" in node.problems()


async def test_a_protocol_of_our_own_is_merged_with_a_handler_of_its_name(tmp_path: Path) -> None:
    mine = a_configuration(
        "shelf", handler="debugEcho", discovery_details="{descriptions: [foo1, foo0]}"
    )
    node = ANode(tmp_path, ["debugEcho"], configurations=[mine])
    path = tmp_path / "other.sock"
    theirs = answer(v0.Device(id="foo0", properties={"FROM": "other"}), v0.Device(id="new"))
    async with running(node.run()), foreign(path, lambda r, c: forever(theirs)):
        await node.until_devices("foo0", "foo1")
        await register(node.socket, str(path), name="debugEcho", shared=False)
        await node.until_devices("new", "foo0", "foo1")
        assert node.heard.shared[0].properties == {"DEBUG_ECHO_DESCRIPTION": "foo0"}
        assert node.heard.complete


async def test_debug_echo_in_a_process_of_its_own_is_the_one_of_the_driver(tmp_path: Path) -> None:
    asked = a_configuration("shelf", handler="debugEcho", discovery_details="descriptions: [foo0]")
    node = ANode(tmp_path, configurations=[asked])
    told = HandlerSettings(debug_echo_file=tmp_path / "none")
    handler = through_sdk(Handlers(told).named("debugEcho"), shared=True)
    async with running(node.run()), running(serve(handler, Place(tmp_path))):
        await node.until_devices("foo0")
        inside = ANode(tmp_path / "inside", ["debugEcho"], configurations=[asked])
        async with running(inside.run(serves=False)):
            await inside.until_devices("foo0")
            assert node.heard == inside.heard

        node.configurations = [
            a_configuration(
                "shelf",
                handler="debugEcho",
                discovery_details="{descriptions: [foo0], shared: false}",
            )
        ]
        node.follow()
        await node.until(lambda: "devices that are shared" in str(problems(node)))
        node.configurations = [a_configuration("shelf", handler="debugEcho", discovery_details="x")]
        node.follow()
        await node.until(lambda: "discoveryDetails" in str(problems(node)))


def problems(node: ANode) -> list[str | None]:
    return [report.problem for report in node.sources.reports("debugEcho", SHELF)]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"name": ""}, "name: "),
        ({"name": "a\0b"}, "name: "),
        ({"name": "n" * 254}, "name: "),
        ({"endpoint": "shelf.sock"}, "endpoint: "),
        ({"endpoint": "/" + "x" * 107}, "more than 107 bytes"),
        ({"endpoint": "/a?b"}, "plain characters"),
        ({"endpoint_type": 7}, "neither UDS"),
        ({"endpoint_type": NETWORK, "endpoint": "ftp://10.0.0.1:10000"}, "neither http"),
        ({"endpoint_type": NETWORK, "endpoint": "http://10.0.0.1"}, "<address>:<port>"),
        ({"endpoint_type": NETWORK, "endpoint": "http://10.0.0.1:99999"}, "endpoint: "),
        ({"endpoint_type": NETWORK, "endpoint": "http://[::1:1"}, "endpoint: "),
    ],
)
async def test_registrations_of_no_sense_are_refused(
    tmp_path: Path, fields: dict[str, Any], complaint: str
) -> None:
    node = ANode(tmp_path)
    async with running(node.run()):
        with pytest.raises(grpc.aio.AioRpcError, match="INVALID_ARGUMENT") as refused:
            await register(node.socket, **{"endpoint": "/a.sock", **fields})
    assert complaint in str(refused.value.details())
    assert node.states() == ()


async def test_the_socket_of_a_living_agent_is_left_alone_and_taken_over_when_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = asyncio.Event()
    monkeypatch.setattr(registration_socket.logger, "warning", lambda *_: told.set())
    first, second = ANode(tmp_path), ANode(tmp_path / "second")
    shelf, place = Shelf(), Place(tmp_path)
    late = registration_socket.RegistrationSocket(place.agent_socket, second.external.register)
    async with running(second.run(serves=False)):
        async with running(first.run()), running(shelf.serve(place)):
            await first.until_state(ACTIVE)
            inode = place.agent_socket.stat().st_ino
            serving = asyncio.ensure_future(late.serve())
            async with asyncio.timeout(10):
                await told.wait()
            assert place.agent_socket.stat().st_ino == inode
            assert second.states() == ()
        async with running(shelf.serve(place)):
            await second.until_state(ACTIVE)
        serving.cancel()
        await asyncio.wait([serving])
    assert not place.agent_socket.exists()


async def test_what_is_wrong_with_our_handlers_is_told_from_their_own_process_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_main, "LOOK_SECONDS", 0.02)

    class FakeHandler:
        name = "debugEcho"
        problem: str | None = None

        def is_shared(self, _: object) -> bool:
            return True

        async def discover(self, *_: object) -> AsyncIterator[tuple[Device, ...]]:
            yield (Device("foo0"),)
            await asyncio.Event().wait()

    ours: Any = FakeHandler()
    asked = a_configuration("shelf", handler="debugEcho", discovery_details="descriptions: [foo0]")
    node = ANode(tmp_path, configurations=[asked])
    async with running(node.run()), running(serve(through_sdk(ours, shared=True), Place(tmp_path))):
        await node.until_devices("foo0")
        assert problems(node) == [None]
        ours.problem = "No network interface\n takes multicast."
        await node.until(lambda: problems(node) == ["No network interface? takes multicast."])
        assert node.ids() == ["foo0"]
        ours.problem = None
        await node.until(lambda: problems(node) == [None])
