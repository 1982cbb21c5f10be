"""What discovery handlers of other processes may be, give and have: decided, then over sockets."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tempfile
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import grpc.aio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ValueReference
from driver.devices import Device, DeviceSpec, Mount
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers import node_conversations as externals
from driver.handlers import registration_socket, sdk
from driver.handlers.registrations import HandlerState
from driver.handlers.report_limits import (
    Admitted,
    HandlerLimits,
    OnHost,
    admitted,
    mount_paths,
    node_paths,
)
from driver.handlers.sdk_requests import Place
from driver.handlers.wire_sizes import excess
from driver.instances import handler_discoveries as discoveries
from driver.plumbing.device_nodes import FileKind, PathTarget
from driver.plumbing.disk import real_paths
from driver.plumbing.disk_dev import HostDev
from driver.plumbing.kubelet_sockets import Access
from kube.backoff import Backoff
from tests.driver.builders import a_configuration
from tests.driver.discovery.certificates import Authority
from tests.driver.handler_nodes import (
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
from tests.driver.tasks import until

ROOT = Path(__file__).parent.parent.parent.parent
ACTIVE = HandlerState.ACTIVE
PORT = "127.0.0.1:23818"
SECRET = ValueReference(kind="Secret", namespace="n", name="s", key="k")
OPEN = HandlerLimits(device_paths=("/dev/video*", "/dev/bus"), mount_paths=("/srv/*/shelf",))
FOLDER = "is not a device node; name each node of a folder"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration_socket, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sdk, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sdk, "GRACE_SECONDS", 0)
    monkeypatch.setattr(discoveries, "_BACKOFF", Backoff(0.02, 0.1))


def node_of(path: str, **fields: str) -> Device:
    spec = {"container_path": "/dev/x", "host_path": path, **fields}
    return Device("d", device_specs=(DeviceSpec(**spec),))


def mount_of(path: str, *, read_only: bool = True, container_path: str = "/x") -> Device:
    return Device("m", mounts=(Mount(container_path, path, read_only),))


def judged(
    device: Device, limits: HandlerLimits, seen: FileKind = FileKind.UNKNOWN, **real: str | None
) -> Admitted:
    """What is decided of a device; where its paths lead is given, else to themselves."""
    host = OnHost(
        {path: real.get("leads", path) for path in mount_paths([device])},
        {path: PathTarget(real.get("leads", path), seen) for path in node_paths([device])},
    )
    return admitted([device], "shelf", limits, host, trusted=True)


def why_not(
    device: Device, limits: HandlerLimits, seen: FileKind = FileKind.UNKNOWN, **real: str | None
) -> str:
    """Why a device is left out, "" if it is not."""
    found = judged(device, limits, seen, **real)
    assert bool(found.devices) is not bool(found.problems)
    return " ".join(found.problems)


@pytest.mark.parametrize(
    ("limits", "device"),
    [
        (HandlerLimits(), node_of("/dev/video0")),
        (HandlerLimits(), node_of("/dev/bus/usb/001/002")),
        (OPEN, node_of("/dev/video7")),
        (OPEN, node_of("/dev/bus/usb/001/002")),
        (OPEN, mount_of("/srv/a/shelf/maps")),
        (HandlerLimits(mount_paths=("/",)), mount_of("/srv", read_only=False)),
        (HandlerLimits(device_paths=("/dev/",)), node_of("/dev/video0")),
        (HandlerLimits(), Device("plain", {"A": "b"})),
    ],
)
def test_what_settings_allow_is_given(limits: HandlerLimits, device: Device) -> None:
    assert why_not(device, limits) == ""


@pytest.mark.parametrize(
    ("limits", "device", "why"),
    [
        (HandlerLimits(), mount_of("/", read_only=False), '"/" is not in --handler-mount-paths'),
        (HandlerLimits(), mount_of("/dev/shm"), "is not in --handler-mount-paths"),
        (HandlerLimits(), node_of("/etc/shadow"), "is not in --handler-device-paths"),
        (HandlerLimits(), node_of("/dev/../etc/shadow"), "is not in --handler-device-paths"),
        (HandlerLimits(), node_of("/dev/./sda"), "is not in --handler-device-paths"),
        (HandlerLimits(), node_of("/dev//sda"), "is not in --handler-device-paths"),
        (HandlerLimits(), node_of("/device"), "is not in --handler-device-paths"),
        (HandlerLimits(), node_of("dev/sda"), "is not in --handler-device-paths"),
        (HandlerLimits(), node_of("/dev/a\0b"), "is not in --handler-device-paths"),
        (HandlerLimits(device_paths=()), node_of("/dev/video0"), "is not in"),
        (OPEN, node_of("/dev/sda"), 'node "/dev/sda" is not in --handler-device-paths'),
        (OPEN, mount_of("/srv/a/b/shelf"), "is not in --handler-mount-paths"),
        (OPEN, mount_of("/srv/a"), "is not in --handler-mount-paths"),
    ],
)
def test_what_settings_do_not_allow_costs_the_device(
    limits: HandlerLimits, device: Device, why: str
) -> None:
    assert why in why_not(device, limits)
    assert why_not(device, limits).startswith(f'Device "{device.id}" is left out: ')


def test_a_link_is_judged_by_where_it_leads() -> None:
    assert "leads to what is not in" in why_not(node_of("/dev/video1"), OPEN, leads="/dev/sda")
    assert "leads to what is not in" in why_not(mount_of("/srv/a/shelf/x"), OPEN, leads="/")
    assert "not seen by the driver" in why_not(mount_of("/srv/a/shelf/x"), OPEN, leads=None)
    assert why_not(node_of("/dev/video1"), OPEN, leads=None) == ""


def test_links_are_followed_and_what_is_not_there_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "loop").symlink_to("loop")
    paths = [str(tmp_path / name) for name in ("link/passwd", "loop", "none", "a\0b")]

    assert list(real_paths(paths).values()) == ["/etc/passwd", None, None, None]


@given(st.lists(st.sampled_from(["dev", "..", ".", "", "video0", "etc"]), max_size=6))
def test_no_path_below_dev_leaves_it(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    if why_not(node_of(path), HandlerLimits()) == "":
        assert os.path.normpath(path) == path
        assert Path(path).is_relative_to("/dev")


@pytest.mark.parametrize("permissions", ["", "rwxz", "x", "RW", "r w", "rwm\0", "rwm\n"])
def test_permissions_that_no_device_cgroup_knows_cost_the_device(permissions: str) -> None:
    why = why_not(node_of("/dev/video0", permissions=permissions), HandlerLimits())

    assert why.startswith('Device "d" is left out: device_specs[0].permissions ')
    assert why.endswith(" are not some of rwm, such as r or rw.")


@pytest.mark.parametrize("permissions", ["r", "w", "m", "rw", "wr", "mrw", "rwm"])
def test_permissions_of_a_device_cgroup_are_given(permissions: str) -> None:
    assert why_not(node_of("/dev/video0", permissions=permissions), HandlerLimits()) == ""


def test_what_is_no_device_node_costs_the_device_and_one_that_may_come_is_awaited() -> None:
    what = 'Device "d" is left out: device_specs[0].host_path "/dev/bus"'
    assert why_not(node_of("/dev/bus"), HandlerLimits(), FileKind.NODE) == ""
    assert why_not(node_of("/dev/bus"), HandlerLimits(), FileKind.OTHER) == f"{what} {FOLDER}."
    assert (
        why_not(node_of("/dev/bus"), HandlerLimits(), FileKind.MISSING) == f"{what} is not there."
    )
    awaits = [judged(node_of("/dev/bus"), HandlerLimits(), seen).awaits for seen in FileKind]
    assert dict(zip(FileKind, awaits, strict=True)) == {
        seen: seen is FileKind.MISSING for seen in FileKind
    }


async def forever(*responses: v0.DiscoverResponse) -> AsyncIterator[v0.DiscoverResponse]:
    for response in responses:
        yield response
    await asyncio.Event().wait()


async def test_a_handler_that_would_mount_the_node_has_its_other_devices_published(
    tmp_path: Path,
) -> None:
    node, path = ANode(tmp_path), tmp_path / "shelf.sock"
    root = v0.Device(id="root", mounts=[v0.Mount(container_path="/host", host_path="/")])
    disk = v0.Device(
        id="disk", device_specs=[v0.DeviceSpec(container_path="/x", host_path="/dev/../sda")]
    )
    both = answer(root, disk, *devices(["good"]))
    async with running(node.run()), foreign(path, lambda r, c: forever(both)):
        await register(node.socket, str(path))
        await node.until_devices("good")
        assert 'Device "root" is left out: mount "/" is not in' in node.problems()
        assert 'Device "disk" is left out: device node "/dev/../sda"' in node.problems()


async def test_a_bad_device_node_costs_its_device_alone_until_it_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing new is said by the handler meanwhile: its devices are looked at again."""
    monkeypatch.setattr(externals, "LOOK_AGAIN_SECONDS", 0.02)
    dev, path = tmp_path / "dev", tmp_path / "shelf.sock"
    (dev / "bus").mkdir(parents=True)
    specs = {
        "late": v0.DeviceSpec(container_path="/dev/x", host_path="/dev/late", permissions="rw"),
        "folder": v0.DeviceSpec(container_path="/dev/x", host_path="/dev/bus", permissions="rw"),
        "rwxz": v0.DeviceSpec(container_path="/dev/x", host_path="/dev/n", permissions="rwxz"),
    }
    bad = [v0.Device(id=name, device_specs=[spec]) for name, spec in specs.items()]
    node = ANode(tmp_path, dev=HostDev(dev))
    everything = answer(*bad, *devices(["good"]))
    async with running(node.run()), foreign(path, lambda r, c: forever(everything)):
        await register(node.socket, str(path))
        await node.until_devices("good")
        assert node.problems() == (
            f'Device "folder" is left out: device_specs[0].host_path "/dev/bus" {FOLDER}.'
            ' Device "late" is left out: device_specs[0].host_path "/dev/late" is not there.'
            ' Device "rwxz" is left out: device_specs[0].permissions "rwxz" are not some of rwm,'
            " such as r or rw."
        )
        (dev / "late").symlink_to("/dev/null")
        (dev / "null").symlink_to("/nowhere")
        os.mknod(dev / "node", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        (dev / "null").unlink()
        (dev / "node").rename(dev / "null")
        await node.until_devices("good", "late")
        assert '"late"' not in node.problems()


@pytest.mark.parametrize("folder", ["network", "elsewhere"])
async def test_devices_bear_whether_their_handler_has_no_privileges(
    tmp_path: Path, folder: str
) -> None:
    """Also those of one that an earlier run of the driver took."""
    path = tmp_path / folder / "shelf.sock"
    path.parent.mkdir()
    limits = HandlerLimits(network_folder=str(tmp_path / "network"))
    node = ANode(tmp_path, limits=limits)
    async with foreign(path, lambda r, c: forever(answer(*devices(["a"])))):
        async with running(node.run()):
            await register(node.socket, str(path))
            await node.until_devices("a")
            await survive(node, path)
        again = ANode(tmp_path, limits=limits)
        async with running(again.run(serves=False)):
            await again.until_devices("a")

    for heard in (node.heard, again.heard):
        assert [d.unprivileged for d in heard.local] == [folder == "network"]


async def survive(node: ANode, path: Path) -> None:
    """A minute, so that the next run of the driver asks the handler without being told of it."""
    node.now += timedelta(minutes=1)
    await register(node.socket, str(path))
    file = node.folder / "data" / "handlers.json"
    await until(lambda: {h["runs"] for h in json.loads(file.read_text())["handlers"]} == {0})


async def test_our_own_names_are_borne_by_others_only_where_a_setting_says_so(
    tmp_path: Path,
) -> None:
    """Also of those that an earlier run of the driver took."""
    earlier = ANode(tmp_path)
    async with running(earlier.run()):
        await register(earlier.socket, "/a.sock", name="onvif")
    assert earlier.states("onvif") != ()

    node = ANode(tmp_path, limits=HandlerLimits(reserved=frozenset({"onvif"})))
    async with running(node.run()):
        with pytest.raises(grpc.aio.AioRpcError, match="PERMISSION_DENIED") as refused:
            await register(node.socket, "/b.sock", name="onvif")
        await register(node.socket, "/b.sock", name="udev")
    assert "--external-handlers would allow it" in str(refused.value.details())
    assert node.states("onvif") == ()
    assert len(node.states("udev")) == 1


def many(count: int) -> v0.DiscoverResponse:
    return answer(*devices(f"{n:06}" for n in range(count)))


async def test_a_flood_is_refused_and_what_was_said_before_stays(tmp_path: Path) -> None:
    told = asyncio.Event()

    async def respond(
        request: v0.DiscoverRequest, context: Context
    ) -> AsyncIterator[v0.DiscoverResponse]:
        for count in (1, 20_000, 5):
            yield many(count)
        await told.wait()
        yield many(3)
        await asyncio.Event().wait()

    node = ANode(tmp_path, limits=HandlerLimits(most_devices=4))
    path = tmp_path / "shelf.sock"
    async with running(node.run()), foreign(path, respond):
        await register(node.socket, str(path))
        await node.until(lambda: "more than 4 devices" in node.problems())
        assert node.ids() == ["000000"]
        assert node.states() == (ACTIVE,)
        told.set()
        await node.until_devices("000000", "000001", "000002")
        assert node.problems() == ""


async def test_the_devices_of_a_handler_are_counted_over_all_configurations(
    tmp_path: Path,
) -> None:
    node = ANode(tmp_path, limits=HandlerLimits(most_devices=4))
    path = tmp_path / "shelf.sock"
    async with running(node.run()), foreign(path, lambda r, c: forever(many(3))):
        await register(node.socket, str(path))
        await node.until_devices("000000", "000001", "000002")
        node.configurations.append(OTHER)
        node.follow()
        await node.until(lambda: "more than 4 devices" in of_other(node))
        assert node.ids() == ["000000", "000001", "000002"]
        del node.configurations[0]
        node.follow()
        await node.until(lambda: of_other(node) == "")


OTHER = a_configuration("other", handler="shelf", discovery_details="more")


def of_other(node: ANode) -> str:
    return " ".join(r.problem or "" for r in node.sources.reports("shelf", OTHER.name))


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (many(4).SerializeToString() * 2000, "more than 9 devices"),
        (b"\x0a\x00" * 100_000, "more than 9 devices"),
        (b"\x0a\xa0\x8d\x06" + b"\x1a\x00" * 50_000, "more than 576 properties"),
        (b"\x12\x00" * 50_000, "more than 576 properties"),
        (b"\x0a\x02\x0b\x0c" + b"\x0a\x00" * 50_000, "is invalid"),
        (b"\x0b" * 50_000, "is invalid"),
        (b"\xff" * 50_000, "is invalid"),
        (b"\x0a\xff\xff\xff\xff\x0f" + bytes(50_000), "is invalid"),
        (b"\x0a\x00" * 100, None),
        (many(9).SerializeToString(), None),
        (answer(v0.Device(id="x" * 100_000)).SerializeToString(), None),
    ],
)
def test_what_an_answer_holds_is_counted_before_it_is_read(
    message: bytes, sentence: str | None
) -> None:
    told = excess(message, 9)

    assert (told is None) == (sentence is None)
    assert (sentence or "") in (told or "")


@given(
    st.lists(st.sampled_from([b"\x0a", b"\x00", b"\x08\xff\x01", b"\x0d", b"\xff", b"\x12\x01"]))
)
def test_any_bytes_are_counted(parts: list[bytes]) -> None:
    told = excess(b"".join(parts) + b"\x0a\x00" * 9_000, 10_000)
    assert told is None or "is invalid" in told


def secretive(node: ANode) -> ANode:
    """Its Configuration names a password that is kept in a Secret, and a user that is not."""
    node.configurations = [a_shelf(discovery_properties={"password": SECRET, "user": "viewer"})]
    node.properties = lambda _: {"password": b"geheim", "user": b"viewer"}
    return node


@pytest.fixture(name="authority")
def _authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


async def test_over_the_network_in_the_clear_there_are_no_secrets_and_nothing_of_the_node(
    tmp_path: Path,
) -> None:
    node, shelf = secretive(ANode(tmp_path)), Shelf()
    shelf.devices = [node_of("/dev/video0"), Device("plain")]
    async with running(node.run()), running(shelf.serve(Place(tmp_path, PORT))):
        await node.until_devices("plain")
        assert [request.properties for request in shelf.requests] == [{"user": b"viewer"}]
        assert 'not sent over the network without TLS: "password".' in node.problems()
        assert 'Device "d" is left out: it is of this node' in node.problems()


async def test_with_certificates_it_is_as_at_a_socket_and_after_a_restart(
    tmp_path: Path, authority: Authority
) -> None:
    shelf = Shelf()
    shelf.devices = [node_of("/dev/video0")]
    place = Place(tmp_path, PORT, authority.issue("shelf"))
    async with running(shelf.serve(place)):
        for serves in (True, False):
            node = secretive(ANode(tmp_path, tls=authority.issue("driver")))
            async with running(node.run(serves=serves)):
                await node.until_devices("d")
                assert node.problems() == ""
    assert all(r.properties["password"] == b"geheim" for r in shelf.requests)


@pytest.mark.parametrize("trusts", ["another authority", "another name", "nobody", "no file"])
async def test_who_shows_no_certificate_of_his_name_is_asked_nothing(
    tmp_path: Path, authority: Authority, trusts: str
) -> None:
    others = Authority(tmp_path / "others")
    shown = {"another authority": others.issue("shelf"), "another name": authority.issue("rack")}
    tls = None if trusts == "nobody" else authority.issue("driver")
    if trusts == "no file":
        authority.issue("driver").key.unlink()
    node, shelf = secretive(ANode(tmp_path, tls=tls)), Shelf()
    place = Place(tmp_path, PORT, shown.get(trusts) or authority.issue("shelf"))
    async with running(node.run()), running(shelf.serve(place)):
        await node.until_state(HandlerState.OFFLINE)
        await node.until(lambda: node.problems() != "")
    assert shelf.requests == []


async def test_a_handler_answers_nobody_without_a_certificate(
    tmp_path: Path, authority: Authority
) -> None:
    shelf = Shelf()
    place = Place(tmp_path, PORT, authority.issue("shelf"))
    node = ANode(tmp_path)
    async with running(node.run()), running(shelf.serve(place)):
        await register(node.socket, f"http://{PORT}", endpoint_type=1, name="shelf")
        await node.until(lambda: HandlerState.OFFLINE in node.states())
    assert shelf.requests == []


async def test_a_certificate_that_was_renewed_is_shown_without_a_restart(
    tmp_path: Path, authority: Authority
) -> None:
    """Of one that cannot be read for a moment the last is."""
    place, shelf = Place(tmp_path, PORT, authority.issue("shelf")), Shelf()
    assert place.tls
    async with running(shelf.serve(place)):
        for renew in (lambda: None, lambda: authority.issue("shelf"), place.tls.key.unlink):
            renew()
            node = ANode(tmp_path, tls=authority.issue("driver"))
            async with running(node.run()):
                await node.until_devices()
                await node.until_state(ACTIVE)
            (tmp_path / "data" / "handlers.json").unlink()


def test_what_is_on_the_network_has_nothing_of_a_node() -> None:
    """Its handlers read what strangers send."""
    found = admitted(
        [node_of("/dev/sda"), Device("camera")], "onvif", HandlerLimits(), OnHost(), trusted=True
    )

    assert found.devices == (Device("camera"),)
    (why,) = found.problems
    assert why.endswith('it is of this node, and those of "onvif" are on the network.')


async def test_in_the_folder_without_privileges_only_handlers_of_networks_register(
    tmp_path: Path,
) -> None:
    """Its group, and nobody else, may connect."""
    node, folder = ANode(tmp_path), tmp_path / "network"
    place = Place(folder)
    agent = registration_socket.RegistrationSocket(
        place.agent_socket, partial(node.external.register, folder=str(folder)), Access(65532)
    )
    async with running(node.run(serves=False)), running(agent.serve()):
        for name, endpoint, why in (
            ("shelf", f"{folder}/shelf.sock", "none of onvif, opcua"),
            ("onvif", f"{tmp_path}/onvif.sock", "not a socket in"),
            ("onvif", f"{folder}/../onvif.sock", "not a socket in"),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match="PERMISSION_DENIED") as refused:
                await register(place.agent_socket, endpoint, name=name)
            assert why in str(refused.value.details())
        with pytest.raises(grpc.aio.AioRpcError, match="PERMISSION_DENIED"):
            await register(place.agent_socket, "http://10.0.0.1:1", name="opcua", endpoint_type=1)
        await register(place.agent_socket, f"{folder}/onvif.sock", name="onvif")
        assert len(node.states("onvif")) == 1
        for path, mode in ((folder, 0o2770), (place.agent_socket, 0o770)):
            status = path.stat()
            assert (status.st_gid, status.st_mode & 0o7777) == (65532, mode)


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from driver.handlers.sdk import Device, Handler, Place, run

async def discover(request):
    yield [Device("camera")]

os.setgroups([])
os.setgid(65532)
os.setuid(65532)
run(Handler("onvif", discover), Place(Path(sys.argv[1])))
"""


async def test_a_handler_without_privileges_waits_for_its_folder_and_serves() -> None:
    if os.geteuid() != 0:
        pytest.skip("root alone becomes another user")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        folder = Path(name) / "network"
        asked = a_configuration("shelf", handler="onvif", discovery_details="")
        node = ANode(Path(name), configurations=[asked])
        register = partial(node.external.register, folder=str(folder))
        socket = Place(folder).agent_socket
        agent = registration_socket.RegistrationSocket(socket, register, Access(65532))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", UNPRIVILEGED, str(folder)), cwd=ROOT
        )
        try:
            async with running(node.run(serves=False)), running(agent.serve()):
                await node.until_devices("camera")
                assert (folder / "onvif.sock").stat().st_uid == 65532
        finally:
            process.kill()
            await process.wait()
