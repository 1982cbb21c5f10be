"""CDI files of Instances, for the device-plugin path."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from driver.api import ConfigurationName
from driver.devices import Mount
from driver.disk import Folder
from driver.disk_cdi import AT_ONCE, InstanceCdiFiles
from driver.instance_cdi import content, file_name
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, a_camera

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


def test_what_adds_nothing_of_the_host_has_no_file() -> None:
    """A device without edits makes a whole CDI file invalid."""
    assert content(a_camera(device_specs=())) is None


def test_a_name_that_cdi_cannot_take_has_no_file() -> None:
    assert content(replace(a_camera(), configuration=ConfigurationName("1st-floor"))) is None


async def test_a_file_is_written_once_and_again_when_it_was_lost(tmp_path: Path) -> None:
    files, camera = InstanceCdiFiles(Folder(tmp_path)), a_camera()

    assert await files.write([camera]) == {CAMERA_1: camera.cdi_name}
    written = (tmp_path / NAME_1).stat()
    await files.write([camera])
    assert (tmp_path / NAME_1).stat().st_mtime_ns == written.st_mtime_ns
    (tmp_path / NAME_1).unlink()
    await files.write([camera])

    assert (tmp_path / NAME_1).read_bytes() == content(camera)


async def test_what_is_known_by_heart_is_looked_at_all_the_same(tmp_path: Path) -> None:
    """Also where there are too many to be looked at at once."""
    files = InstanceCdiFiles(Folder(tmp_path))
    cameras = [a_camera(f"akri-onvif-{number:06x}") for number in range(2 * AT_ONCE)]
    names = {camera.name: camera.cdi_name for camera in cameras}

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
    files, camera = InstanceCdiFiles(Folder(tmp_path)), a_camera(device_specs=(), mounts=())

    assert await files.write([camera]) == await files.write([camera]) == {}


async def test_two_who_write_one_file_both_find_it(tmp_path: Path) -> None:
    files, camera = InstanceCdiFiles(Folder(tmp_path)), a_camera()

    found = await asyncio.gather(*(files.write([camera]) for _ in range(8)))

    assert found == [{CAMERA_1: camera.cdi_name}] * 8


async def test_a_device_that_changed_has_its_file_rewritten(tmp_path: Path) -> None:
    files = InstanceCdiFiles(Folder(tmp_path))
    await files.write([a_camera()])
    changed = a_camera(mounts=(Mount("/a", "/b", read_only=False),))

    await files.write([changed])

    assert (tmp_path / NAME_1).read_bytes() == content(changed)


async def test_a_file_that_cannot_be_written_costs_only_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert await InstanceCdiFiles(Folder(tmp_path / "file")).write([a_camera()]) == {}


async def test_files_of_instances_that_are_gone_are_removed_and_others_are_not(
    tmp_path: Path,
) -> None:
    files = InstanceCdiFiles(Folder(tmp_path))
    await files.write([a_camera(CAMERA_1), a_camera(CAMERA_2)])
    (tmp_path / "vendor.json").write_text("{}")

    await files.keep([CAMERA_2])

    assert Folder(tmp_path).names() == [NAME_2, "vendor.json"]
    await files.write([a_camera(CAMERA_1)])
    assert (tmp_path / NAME_1).exists()
