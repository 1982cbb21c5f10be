"""The plugin serves a kubelet over real sockets."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from driver.kubelet_api.dra.v1 import api_pb2 as v1
from driver.kubelet_api.dra_health.v1 import api_pb2 as health
from driver.plumbing.kubelet_sockets import LONGEST_PATH, KubeletPaths, SocketError
from driver.preparing import kubelet_plugin as dra_kubelet
from driver.running.monitoring.ready_main import socket_name
from tests.driver.claim_builders import (
    a_reference,
    a_result,
    an_instance,
    some_instances,
)
from tests.driver.preparing.dra_worlds import World
from tests.driver.tasks import until
from tests.fakes.kubelet import FakeKubelet

WANTED, OTHER = a_reference(1), a_reference(2)
POD, NEXT_POD = (f"{n}0000000-1111-4222-8333-444444444444" for n in "12")
SHARE = "00000001-aaaa-4000-8000-000000000000"


@pytest.fixture
def world() -> Iterator[World]:
    """In a folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        yield World(Path(root))


@pytest.mark.parametrize("service", ["v1.DRAPlugin", "v1beta1.DRAPlugin"])
async def test_claim_is_prepared_and_unprepared(world: World, service: str) -> None:
    world.reader.put(WANTED, a_result(request="either/first", shareID=SHARE))
    async with world.plugin(), FakeKubelet(world.root / "kubelet", (service,)) as kubelet:
        await kubelet.until("registered")
        answer = (await kubelet.prepare(WANTED))[WANTED.uid]

        name = f"{WANTED.uid}_either_node-a_loop-aaaaaa_{SHARE}"
        assert kubelet.plugins[0].service == service
        assert answer == v1.NodePrepareResourceResponse(
            devices=[
                v1.Device(
                    request_names=["either"],
                    pool_name="node-a",
                    device_name="loop-aaaaaa",
                    cdi_device_ids=[f"moorage.dev/claim={name}"],
                    share_id=SHARE,
                )
            ]
        )
        (file,) = world.cdi.iterdir()
        assert json.loads(file.read_bytes())["devices"][0]["name"] == name

        answers = await kubelet.unprepare(WANTED, OTHER)
        assert {uid: answer.error for uid, answer in answers.items()} == {
            WANTED.uid: "",
            OTHER.uid: "",
        }
        assert list(world.cdi.iterdir()) == []
        assert world.prepared_uids() == []


async def test_failed_claims_have_their_own_error(world: World) -> None:
    world.reader.put(WANTED)
    async with world.plugin(), world.kubelet() as kubelet:
        answers = await kubelet.prepare(WANTED, OTHER)

    assert answers[WANTED.uid].error == ""
    assert answers[OTHER.uid].error == f"ResourceClaim {OTHER} does not exist"
    assert not answers[OTHER.uid].devices


async def test_plugin_tells_what_it_serves(world: World) -> None:
    async with world.plugin() as registration, world.kubelet() as kubelet:
        (plugin,) = kubelet.plugins
        assert registration.problem == ""

    assert (plugin.info.type, plugin.info.name) == ("DRAPlugin", "moorage.dev")
    assert plugin.info.endpoint == str(world.paths().dra_socket)
    assert list(plugin.info.supported_versions) == [
        "v1.DRAPlugin",
        "v1beta1.DRAPlugin",
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]
    assert plugin.service == "v1.DRAPlugin"


async def test_refusal_by_the_kubelet_is_a_problem(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.plugin() as registration:
        assert registration.problem == "the kubelet has not asked for this plugin yet"
        async with FakeKubelet(world.root / "kubelet", refuse="no room") as kubelet:
            await kubelet.until("refused")
        assert registration.problem == "the kubelet refused this plugin: no room"
        assert "Not registered: the kubelet refused this plugin: no room" in caplog.text

        async with world.kubelet():
            assert registration.problem == ""


async def test_restarted_kubelet_finds_the_plugin_and_gets_the_same_answer(world: World) -> None:
    world.reader.put(WANTED)
    async with world.plugin():
        async with world.kubelet() as kubelet:
            first = await kubelet.prepare(WANTED)
        async with world.kubelet() as kubelet:
            assert await kubelet.prepare(WANTED) == first


async def test_restarted_plugin_registers_again_and_gives_the_same_answer(world: World) -> None:
    world.reader.put(WANTED)
    async with FakeKubelet(world.root / "kubelet") as kubelet:
        async with world.plugin():
            await kubelet.until("registered")
            first = await kubelet.prepare(WANTED)
        await kubelet.until("gone")
        world.reader.error = ConnectionError("away")
        world.source.discovered.clear()
        async with world.plugin():
            await kubelet.until("registered", 2)
            assert await kubelet.prepare(WANTED) == first


async def test_call_in_flight_is_carried_out_while_the_plugin_stops(world: World) -> None:
    world.reader.put(WANTED)
    world.reader.delay_seconds = 0.3
    async with FakeKubelet(world.root / "kubelet") as kubelet:
        async with world.plugin():
            await kubelet.until("registered")
            call = asyncio.create_task(kubelet.prepare(WANTED))
            await until(lambda: world.reader.asked > 0)

        # The kubelet drops a plugin's connection as soon as its registration socket is gone.
        with pytest.raises(asyncio.CancelledError):
            await call
    assert world.prepared_uids() == [WANTED.uid]
    assert len(list(world.cdi.iterdir())) == 1


async def test_nothing_is_left_after_a_stop(world: World) -> None:
    async with world.plugin(), world.kubelet() as kubelet, kubelet.health() as reports:
        await anext(reports)

    assert list(world.paths().registration_socket.parent.iterdir()) == []
    assert [path.name for path in world.paths().data.iterdir()] == ["serialize.lock"]


async def test_stop_does_not_wait_for_health_streams(world: World) -> None:
    async with asyncio.timeout(dra_kubelet.GRACE_SECONDS - 1):
        async with FakeKubelet(world.root / "kubelet") as kubelet, world.plugin():
            await kubelet.until("registered")
            async with kubelet.health() as reports:
                await anext(reports)


async def test_stop_ends_health_streams_before_the_first_discovery(world: World) -> None:
    world.source.discovered.clear()
    async with FakeKubelet(world.root / "kubelet") as kubelet:
        async with world.plugin():
            await kubelet.until("registered")
            watching = asyncio.create_task(_first_report(kubelet))
            await asyncio.sleep(0.2)
        left = [task for task in asyncio.all_tasks() if "rpc" in repr(task.get_coro())]
        await asyncio.wait([watching])

    assert left == []


async def test_stop_does_not_wait_for_the_first_discovery(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.source.discovered.clear()
    world.reader.put(WANTED)
    async with asyncio.timeout(dra_kubelet.GRACE_SECONDS + 1):
        async with FakeKubelet(world.root / "kubelet") as kubelet:
            async with world.plugin():
                await kubelet.until("registered")
                call = asyncio.create_task(kubelet.prepare(WANTED))
                await asyncio.sleep(0.2)
            await asyncio.wait([call])

    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == []


async def _first_report(kubelet: FakeKubelet) -> None:
    async with kubelet.health() as reports:
        await anext(reports)


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"\xff\xff\xff", grpc.StatusCode.UNKNOWN),
        (bytes(2 << 20), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
async def test_broken_request_is_refused_and_the_next_one_served(
    world: World, request_bytes: bytes, code: grpc.StatusCode
) -> None:
    world.reader.put(WANTED)
    async with world.plugin(), world.kubelet() as kubelet:
        raw: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = kubelet.plugins[
            0
        ].channel.unary_unary("/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await raw(request_bytes)
        assert refused.value.code() == code

        assert (await kubelet.prepare(WANTED))[WANTED.uid].error == ""


async def test_request_with_a_thousand_claims_is_answered(world: World) -> None:
    wanted = [a_reference(number) for number in range(1000)]
    async with world.plugin(), world.kubelet() as kubelet:
        answers = await kubelet.prepare(*wanted)

    assert len(answers) == 1000
    assert all(answer.error.endswith("does not exist") for answer in answers.values())


async def test_fifty_pods_at_one_time(world: World) -> None:
    """While the kubelet listens to the health of devices, too."""
    wanted = [world.reader.put(a_reference(n), a_result(f"cam-{n:06x}")) for n in range(50)]
    world.source.known.update(some_instances(*(an_instance(f"cam-{n:06x}") for n in range(50))))
    async with world.plugin(), world.kubelet() as kubelet, kubelet.health() as reports:
        await anext(reports)
        prepared = asyncio.gather(*(kubelet.prepare(claim) for claim in wanted))
        answers = await prepared
        world.source.see(an_instance("cam-000031", online=False))
        unwell: set[str] = set()
        while not unwell:
            told = (await anext(reports)).devices
            unwell = {d.device.device_name for d in told if d.health == health.UNHEALTHY}

        assert unwell == {"cam-000031"}
        assert [a[claim.uid].error for a, claim in zip(answers, wanted, strict=True)] == [""] * 50
        assert world.prepared_uids() == [claim.uid for claim in wanted]
        assert len(list(world.cdi.iterdir())) == 50

        await asyncio.gather(*(kubelet.unprepare(claim) for claim in wanted))
        assert world.prepared_uids() == []
        assert list(world.cdi.iterdir()) == []


async def test_plugin_comes_back_when_the_kubelets_folders_are_cleared(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dra_kubelet, "WATCH_SECONDS", 0.02)
    world.reader.put(WANTED)
    async with world.plugin(), world.kubelet() as kubelet:
        first = await kubelet.prepare(WANTED)
        shutil.rmtree(world.paths().registration_socket.parent)
        shutil.rmtree(world.paths().data)
        await kubelet.until("registered", 2)

        assert await kubelet.prepare(WANTED) == first
        assert world.prepared_uids() == [WANTED.uid]


async def test_old_and_new_pod_overlap(world: World) -> None:
    for number in (1, 2, 3):
        world.reader.put(a_reference(number), a_result(f"cam-{number:06x}"))
    world.source.known.update(some_instances(*(an_instance(f"cam-{n:06x}") for n in range(4))))
    async with FakeKubelet(world.root / "kubelet") as kubelet, world.plugin(POD):
        await kubelet.until("registered")
        before = await kubelet.prepare(WANTED)
        async with world.plugin(NEXT_POD):
            await kubelet.until("registered", 2)
            assert await kubelet.prepare(WANTED) == before
            await kubelet.prepare(OTHER)
            kubelet.plugins.reverse()
            await kubelet.unprepare(OTHER)
            await kubelet.prepare(a_reference(3))
            assert world.prepared_uids() == [WANTED.uid, a_reference(3).uid]
        await kubelet.until("gone")
        assert await kubelet.prepare(WANTED) == before

    registered = [name for event, name in kubelet.history if event == "registered"]
    assert registered == [f"moorage.dev-{uid}-reg.sock" for uid in ("10000000", "20000000")]


async def test_successor_at_the_same_path_keeps_its_sockets(world: World) -> None:
    world.reader.put(WANTED)
    async with FakeKubelet(world.root / "kubelet") as kubelet:
        async with world.plugin() as old:
            await kubelet.until("registered")
            new = world.plugin()
            await new.__aenter__()
        assert old.problem == ""
        try:
            await kubelet.until("registered", 2)
            assert (await kubelet.prepare(WANTED))[WANTED.uid].error == ""
        finally:
            await new.__aexit__(None, None, None)


async def test_sockets_of_dead_pods_are_removed_and_no_others(world: World) -> None:
    dead = world.paths(POD).registration_socket
    foreign = dead.with_name("nvidia.com-reg.sock")
    dead.parent.mkdir(parents=True)
    for path in (dead, foreign):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))

    async with world.plugin(NEXT_POD), world.plugin():
        names = {path.name for path in dead.parent.iterdir()}

    assert names == {
        "nvidia.com-reg.sock",
        "moorage.dev-reg.sock",
        "moorage.dev-20000000-reg.sock",
    }


async def test_path_that_is_too_long_for_a_socket_is_told(world: World) -> None:
    deep = World(world.root / ("x" * 90))

    with pytest.raises(SocketError, match=r"has a path of \d+ bytes, and at most 107 fit"):
        async with deep.plugin(POD):
            pass


async def test_paths_fit_below_the_folders_of_snaps() -> None:
    """A socket is made under a hidden name, of one character more."""
    paths = KubeletPaths(Path("/var/snap/microk8s/common/var/lib/kubelet"), POD)
    ready = paths.data / socket_name(POD)
    sockets = (paths.registration_socket, paths.dra_socket, ready)

    assert paths.registration_socket.name == "moorage.dev-10000000-reg.sock"
    assert max(len(str(path)) + 1 for path in sockets) <= LONGEST_PATH


async def test_failed_start_leaves_no_socket(world: World) -> None:
    hidden = world.paths().registration_socket.with_name(".moorage.dev-reg.sock")
    (hidden / "occupied").mkdir(parents=True)

    with pytest.raises(SocketError, match="cannot listen at"):
        async with world.plugin():
            pass

    assert not world.paths().dra_socket.exists()


@pytest.mark.parametrize(
    ("step", "what"),
    [(0, "nothing written"), (1, "CDI file written")],
)
async def test_killed_while_preparing_gives_the_answer_after_a_restart(
    world: World, step: int, what: str
) -> None:
    async with FakeKubelet(world.root / "kubelet") as kubelet:
        async with world.process(die_before_step=step) as process:
            await kubelet.until("registered")
            with pytest.raises(grpc.aio.AioRpcError):
                await kubelet.prepare(WANTED)
            assert await process.wait() == -signal.SIGKILL, what
        async with world.process():
            await kubelet.until("registered", 2)
            answer = (await kubelet.prepare(WANTED))[WANTED.uid]
            assert len(answer.devices) == 1
            assert (world.prepared_uids(), len(list(world.cdi.iterdir()))) == ([WANTED.uid], 1)
            await kubelet.unprepare(WANTED)
            assert (world.prepared_uids(), list(world.cdi.iterdir())) == ([], [])


async def test_killed_while_unpreparing_is_unprepared_after_a_restart(world: World) -> None:
    async with FakeKubelet(world.root / "kubelet") as kubelet:
        async with world.process(die_before_step=3) as process:
            await kubelet.until("registered")
            await kubelet.prepare(WANTED)
            with pytest.raises(grpc.aio.AioRpcError):
                await kubelet.unprepare(WANTED)
            assert await process.wait() == -signal.SIGKILL
        assert world.prepared_uids() == []
        async with world.process():
            await kubelet.until("registered", 2)
            assert (await kubelet.unprepare(WANTED))[WANTED.uid].error == ""
            assert (world.prepared_uids(), list(world.cdi.iterdir())) == ([], [])
