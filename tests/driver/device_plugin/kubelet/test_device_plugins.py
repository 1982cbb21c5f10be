"""Device plugins serve the kubelet's device manager over real sockets."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio
import pytest

from driver.api import ConfigurationName, InstanceName
from driver.device_plugin.containers.responses import ContainerResponse, Refused
from driver.device_plugin.kubelet.device_plugins import DevicePlugins
from driver.device_plugin.kubelet.registrations import Pace
from driver.device_plugin.slots.allocation import OfConfiguration, OfInstance, Plugin
from driver.device_plugin.slots.lists import PluginDevice
from driver.devices import DeviceSpec, Mount
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as v1beta1
from driver.names import short_hash
from tests.fakes.device_manager import FakeDeviceManager, leave_dead_socket

INSTANCE = OfInstance(InstanceName("camera-a1b2c3"))
OTHER = OfInstance(InstanceName("camera-0a0b0c"))
CAMERAS = OfConfiguration(ConfigurationName("camera"), unique_devices=True)
BY_SLOT = OfConfiguration(ConfigurationName("camera"), unique_devices=False)

QUICK = Pace(look_seconds=0.01, again_seconds=0.02, lasting_seconds=0.0, farewell_seconds=0.1)

RESPONSE = ContainerResponse(
    environment={"URL": "rtsp://a", "URL_A1B2C3": "rtsp://a"},
    mounts=(Mount("/in", "/out", read_only=False),),
    device_specs=(DeviceSpec("/dev/video0", "/dev/video7", "rw"),),
    cdi_names=("akri.sh/camera=a1b2c3",),
)


def devices(*ids: str, unhealthy: Sequence[str] = ()) -> tuple[PluginDevice, ...]:
    return tuple(PluginDevice(i, i not in unhealthy) for i in ids)


SLOTS = devices("camera-a1b2c3-0", "camera-a1b2c3-1", unhealthy=["camera-a1b2c3-1"])
LISTED = {"camera-a1b2c3-0": True, "camera-a1b2c3-1": False}


@dataclass
class FakeAnswers:
    """Answers what it is told to, and knows what it was asked."""

    asked: list[tuple[object, ...]] = field(default_factory=list)
    answer: Callable[[], Awaitable[tuple[ContainerResponse, ...] | Refused]] | None = None
    chosen: tuple[str, ...] | None = ()

    async def allocate(
        self, plugin: Plugin, containers: Sequence[Sequence[str]]
    ) -> tuple[ContainerResponse, ...] | Refused:
        self.asked.append((plugin, *(tuple(ids) for ids in containers)))
        return await self.answer() if self.answer else tuple(RESPONSE for _ in containers)

    def preferred(
        self, plugin: Plugin, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        self.asked.append((plugin, tuple(available), tuple(must_include), size))
        if self.chosen is None:
            raise RuntimeError("no idea")
        return self.chosen


@dataclass
class FakeFollower:
    """Knows what it was told of lists, in order."""

    news: list[tuple[str, str, int | None]] = field(default_factory=list)

    def opened(self, resource: str) -> None:
        self.news.append(("opened", resource, None))

    def sent(self, resource: str, healthy: int) -> None:
        self.news.append(("told", resource, healthy))

    def closed(self, resource: str) -> None:
        self.news.append(("closed", resource, None))


@dataclass
class World:
    """A kubelet's folder, and who works in it."""

    folder: Path
    answers: FakeAnswers = field(default_factory=FakeAnswers)
    follower: FakeFollower = field(default_factory=FakeFollower)

    def kubelet(self) -> FakeDeviceManager:
        return FakeDeviceManager(self.folder)

    @asynccontextmanager
    async def plugins(
        self,
        lists: Mapping[Plugin, tuple[PluginDevice, ...]] | None = None,
        pace: Pace = QUICK,
    ) -> AsyncIterator[DevicePlugins]:
        plugins = DevicePlugins(self.folder, self.answers, pace, self.follower)
        plugins.offer({INSTANCE: SLOTS} if lists is None else lists)
        task = asyncio.create_task(plugins.run())
        try:
            yield plugins
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def socket(self, plugin: Plugin) -> Path:
        return self.folder / "moorage" / f"{short_hash(str(plugin))}.sock"


@pytest.fixture
def world() -> Iterator[World]:
    """In a folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        yield World(Path(root) / "device-plugins")


async def until(what: Callable[[], object]) -> None:
    """Wait for what nobody tells of."""
    async with asyncio.timeout(10):
        while not what():  # noqa: ASYNC110  Nobody tells.
            await asyncio.sleep(0.005)


async def refused(sentence: str = "camera-a1b2c3 is full") -> Refused:
    return Refused(sentence)


async def test_plugin_is_registered_with_its_options_and_lists_at_once(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until(lambda: kubelet.capacity == {str(INSTANCE): LISTED})

        (request,) = kubelet.registered
        assert (request.version, request.resource_name) == ("v1beta1", "akri.sh/camera-a1b2c3")
        assert request.options.get_preferred_allocation_available
        assert not request.options.pre_start_required
        (client,) = kubelet.clients[str(INSTANCE)]
        assert client.options == request.options


async def test_kubelet_hears_of_numa_nodes_where_they_are_known(world: World) -> None:
    listed = (PluginDevice("a", True, numa_node=0), PluginDevice("b", True))

    async with world.kubelet() as kubelet, world.plugins({INSTANCE: listed}):
        await kubelet.until(lambda: str(INSTANCE) in kubelet.capacity)

        (client,) = kubelet.clients[str(INSTANCE)]
        assert client.topology == {"a": [0], "b": []}


async def test_container_gets_environment_mounts_nodes_and_cdi_names(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until_listed(str(INSTANCE), camera_a1b2c3_0=True, camera_a1b2c3_1=False)

        answer = await kubelet.allocate(str(INSTANCE), ["camera-a1b2c3-0", "nonsense"], [])

    assert world.answers.asked == [(INSTANCE, ("camera-a1b2c3-0", "nonsense"), ())]
    first, second = answer.container_responses
    assert first == second
    assert dict(first.envs) == RESPONSE.environment
    assert dict(first.annotations) == {}
    (mount,), (node,), (cdi,) = first.mounts, first.devices, first.cdi_devices
    assert (mount.container_path, mount.host_path, mount.read_only) == ("/in", "/out", False)
    assert (node.container_path, node.host_path) == ("/dev/video0", "/dev/video7")
    assert node.permissions == "rw"
    assert cdi.name == "akri.sh/camera=a1b2c3"


async def test_refusal_tells_the_kubelet_its_sentence(world: World) -> None:
    world.answers.answer = refused
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until(lambda: kubelet.capacity)

        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await kubelet.allocate(str(INSTANCE), ["camera-a1b2c3-0"])

    assert failure.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert failure.value.details() == "camera-a1b2c3 is full"


async def test_error_of_the_driver_is_an_answer_and_the_next_call_works(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> Refused:
        raise RuntimeError("no such thing")

    world.answers.answer = broken
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until(lambda: kubelet.capacity)

        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await kubelet.allocate(str(INSTANCE), ["camera-a1b2c3-0"])
        world.answers.answer = None
        assert (await kubelet.allocate(str(INSTANCE), ["camera-a1b2c3-0"])).container_responses

    assert failure.value.code() == grpc.StatusCode.INTERNAL
    assert "akri.sh/camera-a1b2c3: internal error of the driver" in str(failure.value.details())
    assert "no such thing" in caplog.text


async def test_preference_is_passed_on_and_an_error_leaves_the_choice_to_the_kubelet(
    world: World,
) -> None:
    world.answers.chosen = ("b", "c")
    async with world.kubelet() as kubelet, world.plugins({CAMERAS: devices("a", "b", "c")}):
        await kubelet.until(lambda: kubelet.capacity)

        answer = await kubelet.preferred(str(CAMERAS), ["a", "b", "c"], ["b"], 2)
        world.answers.chosen = None
        none = await kubelet.preferred(str(CAMERAS), ["a"], [], 1)

    assert [list(c.deviceIDs) for c in answer.container_responses] == [["b", "c"]]
    assert world.answers.asked[0] == (CAMERAS, ("a", "b", "c"), ("b",), 2)
    assert [list(c.deviceIDs) for c in none.container_responses] == [[]]


async def test_list_is_sent_when_it_differs_or_when_told_to(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins() as plugins:
        await kubelet.until(lambda: kubelet.capacity)
        (client,) = kubelet.clients[str(INSTANCE)]

        plugins.offer({INSTANCE: devices("camera-a1b2c3-0", "camera-a1b2c3-1", unhealthy=[])})
        await kubelet.until_listed(str(INSTANCE), camera_a1b2c3_0=True, camera_a1b2c3_1=True)
        plugins.offer({INSTANCE: devices("camera-a1b2c3-0", "camera-a1b2c3-1")})
        plugins.resend(INSTANCE)
        plugins.resend(OTHER)
        await kubelet.until(lambda: len(client.lists) == 3)
        plugins.offer({INSTANCE: ()})
        await kubelet.until(lambda: client.lists[-1] == {})

    healthy = dict.fromkeys(LISTED, True)
    assert client.lists == [LISTED, healthy, healthy, {}]
    assert len(kubelet.registered) == 1


async def test_changes_that_come_together_are_one_list(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins() as plugins:
        await kubelet.until(lambda: kubelet.capacity)
        (client,) = kubelet.clients[str(INSTANCE)]

        for number in range(50):
            plugins.offer({INSTANCE: devices(f"d-{number}")})
        await kubelet.until_listed(str(INSTANCE), d_49=True)

    assert client.lists == [LISTED, {"d-49": True}]


async def test_slow_reader_gets_the_newest_list_and_holds_up_nobody(world: World) -> None:
    def large(round_: int) -> tuple[PluginDevice, ...]:
        return devices(*(f"{round_}-{n:050}" for n in range(2000)))

    lists: dict[Plugin, tuple[PluginDevice, ...]] = {INSTANCE: large(0), OTHER: devices("x")}
    async with world.kubelet() as kubelet:
        kubelet.deaf = True
        async with world.plugins(lists) as plugins:
            await kubelet.until(lambda: len(kubelet.capacity) == 2)
            (client,) = kubelet.clients[str(INSTANCE)]
            deaf = client.plugin.ListAndWatch(v1beta1.Empty())
            for number in range(1, 50):
                plugins.offer({INSTANCE: large(number), OTHER: devices(f"x-{number}")})
                await kubelet.allocate(str(OTHER), ["x"])
            seen = []
            async for answer in deaf:
                seen.append(answer.devices[0].ID.partition("-")[0])
                if seen[-1] == "49":
                    break
            deaf.cancel()
            await kubelet.stop()

    assert len(seen) < 49


async def test_plugin_that_is_no_more_ends_with_an_empty_list(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins({INSTANCE: SLOTS, CAMERAS: ()}) as plugins:
        await kubelet.until(lambda: len(kubelet.capacity) == 2)
        (client,) = kubelet.clients[str(INSTANCE)]

        plugins.offer({CAMERAS: ()})
        await kubelet.until(lambda: not kubelet.clients[str(INSTANCE)])

        assert client.lists == [LISTED, {}]
        assert kubelet.capacity[str(INSTANCE)] == {}
        assert kubelet.clients[str(CAMERAS)]
        await until(lambda: not world.socket(INSTANCE).exists())


async def test_follower_hears_of_lists_that_were_sent_and_of_no_others(world: World) -> None:
    resource = str(INSTANCE)
    async with world.kubelet() as kubelet, world.plugins() as plugins:
        plugins.offer({INSTANCE: devices("a", "b")})
        assert world.follower.news == []
        await kubelet.until_listed(resource, a=True, b=True)
        plugins.offer({INSTANCE: devices("a", "b", unhealthy=["b"])})
        await kubelet.until_listed(resource, a=True, b=False)

        plugins.offer({})
        await kubelet.until(lambda: not kubelet.clients[resource])
        await until(lambda: len(world.follower.news) == 5)

    opened, *sent, closed = world.follower.news
    assert (opened, closed) == (("opened", resource, None), ("closed", resource, None))
    assert sent == [("told", resource, healthy) for healthy in (2, 1, 0)]


async def test_plugin_that_comes_back_is_registered_again(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins() as plugins:
        await kubelet.until(lambda: kubelet.capacity)

        for number in range(3):
            plugins.offer({})
            plugins.offer({INSTANCE: devices(f"d-{number}")})
        await kubelet.until_listed(str(INSTANCE), d_2=True)

        assert [r.resource_name for r in kubelet.registered] == [str(INSTANCE)] * 2
        assert (await kubelet.allocate(str(INSTANCE), ["d-2"])).container_responses


async def test_other_ids_of_a_resource_are_a_change_of_its_list(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins({CAMERAS: devices("a")}) as plugins:
        await kubelet.until(lambda: kubelet.capacity)

        plugins.offer({BY_SLOT: devices("a-0", "a-1")})
        await kubelet.until_listed(str(CAMERAS), a_0=True, a_1=True)
        await kubelet.allocate(str(CAMERAS), ["a-1"])

    assert world.answers.asked == [(BY_SLOT, ("a-1",))]
    assert len(kubelet.registered) == 1


async def test_of_two_plugins_of_one_resource_the_last_counts_whichever_changes(
    world: World,
) -> None:
    both: dict[Plugin, tuple[PluginDevice, ...]] = {
        CAMERAS: devices("a"),
        BY_SLOT: devices("a-0"),
    }
    async with world.kubelet() as kubelet, world.plugins(both) as plugins:
        await kubelet.until_listed(str(CAMERAS), a_0=True)
        (client,) = kubelet.clients[str(CAMERAS)]

        plugins.offer({**both, CAMERAS: devices("b")})
        plugins.offer({**both, OTHER: SLOTS})
        await kubelet.until(lambda: str(OTHER) in kubelet.capacity)
        plugins.offer({**both, OTHER: devices("x")})
        await kubelet.until_listed(str(OTHER), x=True)

    assert client.lists == [{"a-0": True}]


async def test_kubelet_that_gives_up_does_not_stop_the_work(world: World) -> None:
    begun, release, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow() -> Refused:
        begun.set()
        await release.wait()
        done.set()
        return Refused("nobody hears it")

    world.answers.answer = slow
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until(lambda: kubelet.capacity)
        call = asyncio.create_task(kubelet.allocate(str(INSTANCE), ["camera-a1b2c3-0"]))
        await begun.wait()
        call.cancel()
        await asyncio.wait((call,))
        await kubelet.stop()
        release.set()
        async with asyncio.timeout(10):
            await done.wait()


async def test_end_of_the_driver_waits_for_the_work(world: World) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def slow() -> tuple[ContainerResponse, ...]:
        begun.set()
        await release.wait()
        return (RESPONSE,)

    world.answers.answer = slow
    async with world.kubelet() as kubelet:
        async with world.plugins():
            await kubelet.until(lambda: kubelet.capacity)
            (client,) = kubelet.clients[str(INSTANCE)]
            call = asyncio.create_task(kubelet.allocate(str(INSTANCE), ["camera-a1b2c3-0"]))
            await begun.wait()
            asyncio.get_running_loop().call_later(0.05, release.set)
        assert (await call).container_responses
        assert client.lists == [LISTED], "what is there again after a restart is not taken back"
        assert not world.socket(INSTANCE).exists()


async def test_plugins_are_registered_with_the_next_run_of_the_kubelet(world: World) -> None:
    lists: dict[Plugin, tuple[PluginDevice, ...]] = {INSTANCE: SLOTS, CAMERAS: devices("a")}
    async with world.kubelet() as kubelet, world.plugins(lists):
        await kubelet.until(lambda: len(kubelet.capacity) == 2)

        await kubelet.kill()
        await kubelet.start()
        await kubelet.until(lambda: len(kubelet.capacity) == 2)

        assert kubelet.capacity[str(INSTANCE)] == LISTED
        assert len(kubelet.registered) == 4
        assert (await kubelet.allocate(str(INSTANCE), ["camera-a1b2c3-0"])).container_responses


async def test_plugins_wait_for_a_kubelet_that_is_away(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kubelet = world.kubelet()
    async with world.plugins():
        await until(lambda: "The kubelet does not answer" in caplog.text)
        async with kubelet:
            await kubelet.until(lambda: kubelet.capacity)
            await kubelet.kill()
            await until(lambda: caplog.text.count("The kubelet does not answer") == 2)
            await kubelet.start()
            await kubelet.until(lambda: kubelet.capacity)

    assert "is not registered" not in caplog.text


async def test_sockets_that_somebody_removed_are_opened_again(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until(lambda: kubelet.capacity)

        world.socket(INSTANCE).unlink()
        await kubelet.kill()
        await kubelet.start()

        await kubelet.until(lambda: kubelet.capacity)


async def test_client_that_is_dropped_is_followed_by_the_next(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until(lambda: kubelet.capacity == {str(INSTANCE): LISTED})

        await kubelet.disconnect(str(INSTANCE))
        await kubelet.until(lambda: kubelet.capacity == {str(INSTANCE): LISTED})

        assert len(kubelet.registered) == 2


async def test_a_resource_that_is_refused_or_stuck_holds_up_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stuck = [OfInstance(InstanceName(f"stuck-{n}")) for n in range(3)]
    lists: dict[Plugin, tuple[PluginDevice, ...]] = dict.fromkeys([*stuck, OTHER, INSTANCE], SLOTS)
    async with world.kubelet() as kubelet:
        kubelet.stuck.update(map(str, stuck))
        kubelet.refuse.add(str(OTHER))
        async with world.plugins(lists):
            await kubelet.until(lambda: str(INSTANCE) in kubelet.capacity)

            assert kubelet.capacity.keys() == {str(INSTANCE)}
            await until(lambda: "invalid resource name" in caplog.text)
            kubelet.refuse.clear()
            await kubelet.until(lambda: str(OTHER) in kubelet.capacity)

    assert caplog.text.count("akri.sh/camera-0a0b0c is not registered") == 1


async def test_while_a_new_driver_takes_over_the_kubelet_always_knows_the_devices(
    world: World,
) -> None:
    """The kubelet drops its newest client when any stream ends, and is told to forget it."""
    seen: list[dict[str, bool]] = []
    async with world.kubelet() as kubelet, AsyncExitStack() as old:
        await old.enter_async_context(world.plugins({INSTANCE: devices("n")}))
        await kubelet.until_listed(str(INSTANCE), n=True)
        kubelet.heard = lambda: seen.append(dict(kubelet.capacity[str(INSTANCE)]))
        async with world.plugins({INSTANCE: devices("n")}) as new:
            await until(lambda: new.is_introduced)
            made = world.socket(INSTANCE).stat().st_ino
            await kubelet.allocate(str(INSTANCE), ["n"])

            await old.aclose()
            await kubelet.allocate(str(INSTANCE), ["n"])

            await kubelet.until(lambda: len(kubelet.registered) == 3)
            await kubelet.allocate(str(INSTANCE), ["n"])
            assert len(kubelet.clients[str(INSTANCE)]) == 1
            assert world.socket(INSTANCE).stat().st_ino == made
            assert seen == [{"n": True}] * len(seen) != []
        await kubelet.until_listed(str(INSTANCE), n=False)


async def test_without_a_predecessor_one_registration_is_enough(world: World) -> None:
    async with world.kubelet() as kubelet, world.plugins() as plugins:
        await until(lambda: plugins.is_introduced)

        assert len(kubelet.registered) == kubelet.asked == 1


async def test_old_driver_leaves_a_restarted_kubelet_to_the_new_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        world.kubelet() as kubelet,
        world.plugins({INSTANCE: devices("old")}) as old,
    ):
        await kubelet.until(lambda: kubelet.capacity)
        async with world.plugins({INSTANCE: devices("new")}):
            await kubelet.until_listed(str(INSTANCE), new=True)
            await kubelet.kill()
            await kubelet.start()
            await kubelet.until_listed(str(INSTANCE), new=True)
            await until(lambda: "another process serves" in caplog.text)
            old.offer({INSTANCE: devices("older")})
            await kubelet.allocate(str(INSTANCE), ["new"])

            assert kubelet.capacity == {str(INSTANCE): {"new": True}}
            assert len(kubelet.registered) == 3


async def test_sockets_of_dead_processes_are_removed(world: World) -> None:
    dead = world.socket(OTHER)
    leave_dead_socket(dead)
    leave_dead_socket(world.socket(INSTANCE))
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until(lambda: kubelet.capacity)

        assert not dead.exists()


async def test_choice_among_many_devices_fits(world: World) -> None:
    many = [f"{number:063}" for number in range(30_000)]
    async with world.kubelet() as kubelet, world.plugins():
        await kubelet.until(lambda: kubelet.capacity)

        assert (await kubelet.preferred(str(INSTANCE), many, [], 1)).container_responses

    assert world.answers.asked == [(INSTANCE, tuple(many), (), 1)]


async def test_folder_that_is_too_deep_is_said_and_ends_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    deep = World(world.folder / ("x" * (84 - len(str(world.folder)))))
    async with deep.kubelet(), deep.plugins():
        await until(lambda: "is not registered with the kubelet: SocketError" in caplog.text)

    assert "107 fit" in caplog.text
