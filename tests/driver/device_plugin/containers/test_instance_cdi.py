"""CDI files of Instances, for the device-plugin path."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from driver.api import ConfigurationName, InstanceName
from driver.device_plugin.containers.disk_cdi import AT_ONCE, instance_files
from driver.device_plugin.containers.given_events import given_event, named
from driver.device_plugin.containers.instance_cdi import (
    GivenChange,
    GivenFile,
    content,
    file_name,
    given_file,
)
from driver.device_plugin.containers.responses import Files
from driver.devices import DeviceSpec, Mount
from driver.instances.instances import Instance
from driver.plumbing.disk import Folder
from driver.preparing.grants.device_events import path_taken
from driver.preparing.grants.device_locators import DeviceLocator
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, a_camera

LOCAL = {CAMERA_1: False}


def given(root: Path, camera: Instance) -> Files:
    return Files(camera.cdi_name, str(root / "moorage.dev" / camera.name))


def leads(root: Path, link: str = "device-0", instance: InstanceName = CAMERA_1) -> str:
    return os.readlink(root / "moorage.dev" / instance / link)


NAME_1, NAME_2 = file_name(CAMERA_1), file_name(CAMERA_2)


def test_the_file_says_what_akris_cdi_name_stands_for() -> None:
    camera = a_camera(mounts=(Mount("/run/camera", "/camera", read_only=True),))

    assert json.loads(content(camera) or b"") == {
        "cdiVersion": "0.5.0",
        "kind": "akri.sh/akri-onvif",
        "devices": [
            {
                "name": "8120fe",
                "containerEdits": {
                    "env": ["URL=rtsp://8120fe", "URL_8120FE=rtsp://8120fe"],
                    "deviceNodes": [
                        {"path": "/dev/8120fe", "hostPath": "/dev/8120fe", "permissions": "rw"}
                    ],
                    "mounts": [
                        {
                            "hostPath": "/camera",
                            "containerPath": "/run/camera",
                            "options": ["rbind", "rprivate", "ro"],
                        }
                    ],
                },
            }
        ],
    }


def test_of_what_is_denied_nothing_is_in_the_file() -> None:
    odd = a_camera(properties={"LD_PRELOAD": "/x.so", "no_proxy": "*", "URL": "rtsp://8120fe"})

    assert content(odd) == content(a_camera())


def test_what_adds_nothing_has_no_file() -> None:
    """A device without edits makes a whole CDI file invalid."""
    assert content(a_camera(device_specs=(), properties={})) is None


def test_what_a_file_says_can_be_read_again() -> None:
    assert given_file(content(a_camera())) == GivenFile(
        ("/dev/8120fe",), {"URL": "rtsp://8120fe", "URL_8120FE": "rtsp://8120fe"}, True
    )


@pytest.mark.parametrize("text", [None, b"", b"{", b"[]", b'{"devices": []}', b'{"devices": [7]}'])
def test_what_is_no_file_of_ours_says_nothing(text: bytes | None) -> None:
    assert given_file(text) is None


def test_a_name_that_cdi_cannot_take_has_no_file() -> None:
    assert content(replace(a_camera(), configuration=ConfigurationName("1st-floor"))) is None


async def test_a_file_is_written_once_and_again_when_it_was_lost(tmp_path: Path) -> None:
    files, camera = instance_files(tmp_path), a_camera()

    assert await files.write([camera]) == {CAMERA_1: given(tmp_path, camera)}
    written = (tmp_path / NAME_1).stat()
    await files.write([camera])
    assert (tmp_path / NAME_1).stat().st_mtime_ns == written.st_mtime_ns
    (tmp_path / NAME_1).unlink()
    await files.write([camera])

    assert (tmp_path / NAME_1).read_bytes() == content(camera)


async def test_what_is_known_by_heart_is_looked_at_all_the_same(tmp_path: Path) -> None:
    """Also where there are too many to be looked at at once."""
    files = instance_files(tmp_path)
    cameras = [a_camera(f"akri-onvif-{number:06x}") for number in range(2 * AT_ONCE)]
    names = {camera.name: given(tmp_path, camera) for camera in cameras}

    assert await files.write(cameras) == await files.write(cameras) == names
    (tmp_path / file_name(cameras[0].name)).unlink()
    (tmp_path / file_name(cameras[1].name)).write_bytes(b"{}")
    await files.write(cameras[:1])
    await files.write(cameras)

    found = [(tmp_path / file_name(camera.name)).read_bytes() for camera in cameras]
    assert found == [content(camera) for camera in cameras]


async def test_a_device_that_adds_nothing_has_no_name_however_often_it_is_asked_for(
    tmp_path: Path,
) -> None:
    files, camera = instance_files(tmp_path), a_camera(device_specs=(), properties={})

    nameless = {CAMERA_1: replace(given(tmp_path, camera), cdi_name="")}
    assert await files.write([camera]) == await files.write([camera]) == nameless


async def test_two_who_write_one_file_both_find_it(tmp_path: Path) -> None:
    files, camera = instance_files(tmp_path), a_camera()

    found = await asyncio.gather(*(files.write([camera]) for _ in range(8)))

    assert found == [{CAMERA_1: given(tmp_path, camera)}] * 8


async def test_a_device_that_changed_has_its_file_rewritten(tmp_path: Path) -> None:
    files = instance_files(tmp_path)
    await files.write([a_camera()])
    changed = a_camera(mounts=(Mount("/a", "/b", read_only=False),))

    await files.write([changed])

    assert (tmp_path / NAME_1).read_bytes() == content(changed)


async def test_what_cannot_be_written_is_not_there_to_be_given(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert await instance_files(tmp_path / "file").write([a_camera()]) == {}


async def test_files_of_instances_that_are_gone_are_removed_and_others_are_not(
    tmp_path: Path,
) -> None:
    files = instance_files(tmp_path)
    await files.write([a_camera(CAMERA_1), a_camera(CAMERA_2)])
    (tmp_path / "vendor.json").write_text("{}")

    await files.keep([CAMERA_2])

    assert Folder(tmp_path).names() == [NAME_2, "vendor.json"]
    assert os.listdir(tmp_path / "moorage.dev") == [CAMERA_2]
    await files.write([a_camera(CAMERA_1)])
    assert (tmp_path / NAME_1).exists()


def at(path: str, name: InstanceName = CAMERA_1) -> Instance:
    return a_camera(name, device_specs=(DeviceSpec(path, path),), properties={"NODE": path})


async def test_what_was_given_follows_a_device_that_moves(tmp_path: Path) -> None:
    files = instance_files(tmp_path)
    await files.write([at("/dev/a")])

    (change,) = await files.follow(LOCAL, DeviceLocator([at("/dev/b")]))

    assert leads(tmp_path) == "/dev/b"
    assert (tmp_path / NAME_1).read_bytes() == content(at("/dev/b"))
    assert (change.before, change.after) == tuple(
        given_file(content(at(path))) for path in ("/dev/a", "/dev/b")
    )
    assert await files.follow(LOCAL, DeviceLocator([at("/dev/b")])) == ()


async def test_what_was_given_of_a_device_that_is_away_leads_nowhere(tmp_path: Path) -> None:
    files = instance_files(tmp_path)
    await files.write([at("/dev/a")])

    (change,) = await files.follow(LOCAL, DeviceLocator([at("/dev/a", CAMERA_2)]))

    assert change.withdrawn == f"was at /dev/a, where Instance {CAMERA_2} is now"
    assert not (tmp_path / NAME_1).exists()
    target = f"/dev/moorage.dev: the device of Instance {CAMERA_1} {change.withdrawn}"
    assert leads(tmp_path) == target
    assert await files.follow(LOCAL, DeviceLocator([])) == ()

    (back,) = await files.follow(LOCAL, DeviceLocator([at("/dev/a")]))
    assert (back.before, leads(tmp_path)) == (None, "/dev/a")
    assert (tmp_path / NAME_1).exists()


async def test_a_start_finds_what_an_earlier_process_gave(tmp_path: Path) -> None:
    await instance_files(tmp_path).write([at("/dev/a")])
    unheard = DeviceLocator([], [ConfigurationName("akri-onvif")])

    files = instance_files(tmp_path)
    assert await files.follow(LOCAL, unheard) == ()
    assert leads(tmp_path) == "/dev/a"
    (change,) = await files.follow(LOCAL, DeviceLocator([at("/dev/b")]))

    assert change.before == given_file(content(at("/dev/a")))
    assert leads(tmp_path) == "/dev/b"


async def test_the_address_of_a_network_device_that_is_away_stays(tmp_path: Path) -> None:
    files, camera = instance_files(tmp_path), a_camera(device_specs=())
    await files.write([camera])

    assert await files.follow({CAMERA_1: True}, DeviceLocator([])) == ()
    assert (tmp_path / NAME_1).exists()
    thief = a_camera(CAMERA_2, device_specs=(), properties=camera.properties)
    assert len(await files.follow({CAMERA_1: True}, DeviceLocator([thief]))) == 1
    assert not (tmp_path / NAME_1).exists()


async def test_a_node_that_a_device_has_no_more_leads_nowhere(tmp_path: Path) -> None:
    files = instance_files(tmp_path)
    two = tuple(DeviceSpec(f"/dev/{n}", f"/dev/{n}") for n in "ab")
    await files.write([a_camera(device_specs=two)])

    await files.follow(LOCAL, DeviceLocator([at("/dev/a")]))

    assert leads(tmp_path) == "/dev/a"
    assert leads(tmp_path, "device-1").startswith("/dev/moorage.dev: the device of Instance")


async def test_a_folder_that_a_runtime_made_of_a_mount_gives_way_to_its_link(
    tmp_path: Path,
) -> None:
    (tmp_path / "moorage.dev" / CAMERA_1 / "mount-0").mkdir(parents=True)
    camera = a_camera(mounts=(Mount("/in", "/out"),))

    await instance_files(tmp_path).write([camera])

    assert leads(tmp_path, "mount-0") == "/out"


def notice(change: GivenChange, *left: str) -> tuple[str, str, bool]:
    found = given_event(change, left, DeviceLocator([at("/dev/a", CAMERA_2)]))
    assert found is not None
    return found.reason, found.sentence, found.is_warning


def test_pods_are_told_what_their_containers_hold() -> None:
    before, after = (given_file(content(at(path))) for path in ("/dev/a", "/dev/b"))
    held = (
        f" Containers that were started before hold /dev/a, which is Instance {CAMERA_2}'s now:"
        " start them anew."
    )

    assert notice(GivenChange(CAMERA_1, before, after), "/dev/a") == (
        "DeviceMoved",
        f"The device of Instance {CAMERA_1} moved to /dev/b.{held}",
        True,
    )
    assert notice(GivenChange(CAMERA_1, before, None, "is offline"), "/dev/a") == (
        "DeviceAway",
        f"The device of Instance {CAMERA_1} is offline: no container is started with it until it"
        f" is back.{held.replace(': start them anew', '')}",
        True,
    )
    often = notice(GivenChange(CAMERA_1, before, after), "/dev/x", "/dev/a")[1]
    assert often.endswith("'s now, or an earlier path: start them anew.")
    assert notice(GivenChange(CAMERA_1, None, after)) == (
        "DeviceBack",
        f"The device of Instance {CAMERA_1} is back at /dev/b.",
        False,
    )
    old, new = (given_file(content(a_camera(properties={"URL": v}))) for v in ("a", "b"))
    assert notice(GivenChange(CAMERA_1, old, new)) == (
        "DeviceChanged",
        f"The device of Instance {CAMERA_1} changed: containers that run have its old URL.",
        True,
    )
    assert path_taken(f"the {named(CAMERA_1)}", "/dev/a", CAMERA_2).sentence == (
        f"/dev/a is Instance {CAMERA_2}'s now. Containers that were started when the device of"
        f" Instance {CAMERA_1} was there hold it: start them anew."
    )


async def test_what_was_given_follows_a_link_of_the_host(tmp_path: Path) -> None:
    files, link = instance_files(tmp_path / "cdi"), tmp_path / "by-id"
    link.symlink_to("/dev/null")
    where = DeviceLocator([at(str(link))])
    await files.follow({CAMERA_1: False}, where)
    assert leads(tmp_path / "cdi") == "/dev/null"

    link.unlink()
    link.symlink_to("/dev/zero")
    (change,) = await files.follow({CAMERA_1: False}, where)

    assert leads(tmp_path / "cdi") == "/dev/zero"
    assert change.after is not None
    assert change.after.paths == ("/dev/zero",)


async def test_a_link_that_an_earlier_process_wrote_is_where_it_leads(tmp_path: Path) -> None:
    """It did not see the host's links, and the runtime followed them: no device moved."""
    link = tmp_path / "by-id"
    link.symlink_to("/dev/null")
    earlier = instance_files(tmp_path / "cdi", resolve=str)
    await earlier.follow({CAMERA_1: False}, DeviceLocator([at(str(link))]))

    files = instance_files(tmp_path / "cdi")
    where = DeviceLocator([at(str(link))])
    assert await files.follow({CAMERA_1: False}, where) == ()
    assert leads(tmp_path / "cdi") == "/dev/null"

    link.unlink()
    link.symlink_to("/dev/zero")
    (change,) = await files.follow({CAMERA_1: False}, where)
    assert change.before is not None
    assert change.before.paths == ("/dev/null",)
