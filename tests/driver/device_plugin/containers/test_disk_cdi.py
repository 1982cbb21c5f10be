"""CDI files and links that an old and a new process write at one time, during an update."""

from __future__ import annotations

import asyncio
import os
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from driver.device_plugin.containers.disk_cdi import instance_files
from driver.device_plugin.containers.instance_cdi import content, file_name
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.plumbing.disk import Folder
from driver.preparing.grants.device_locators import DeviceLocator
from tests.driver.plumbing.conftest import tiny as tiny
from tests.driver.plumbing.writers import ROUNDS, Writers, limit_files
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, a_camera

NAME_1 = file_name(CAMERA_1)
LINK = Path("moorage.dev") / CAMERA_1 / "device-0"


def seen_at(place: str) -> Instance:
    """The camera as one process sees it: with enough properties for a file of several pages."""
    properties = {f"PROPERTY_{n}": place * 50 for n in range(200)}
    return a_camera(device_specs=(DeviceSpec(place, place),), properties=properties)


def give_often(root: Path, writer: str, told: Connection) -> None:
    """Give the camera by this process's own view; tells how often it could not."""
    told.send(asyncio.run(_given_often(root, writer)))


async def _given_often(root: Path, writer: str) -> int:
    failures, files = 0, instance_files(root)
    for number in range(ROUNDS // 3):
        found = (await files.write([seen_at(views(writer)[number % 2])])).get(CAMERA_1)
        failures += found is None or not found.cdi_name
    return failures


def views(*writers: str) -> list[str]:
    """Where they see the camera, in turns."""
    return [f"/dev/{writer}{number}" for writer in writers for number in range(2)]


def texts(*writers: str) -> set[bytes | None]:
    """What files say then."""
    return {content(seen_at(place)) for place in views(*writers)}


def fail_to_give(root: Path, writer: str, told: Connection) -> None:
    """The same on what is to this process a full disk."""
    limit_files(16)
    give_often(root, writer, told)


def test_what_two_processes_give_by_different_views_is_one_of_them_and_never_torn(
    tmp_path: Path,
) -> None:
    folder, link = Folder(tmp_path), tmp_path / LINK
    asyncio.run(instance_files(tmp_path).write([seen_at("/dev/a0")]))
    writers = Writers(tmp_path, a=give_often, b=give_often)

    looks = {(folder.read(NAME_1), os.readlink(link)) for _ in writers.meanwhile()}

    assert {text for text, _ in looks} <= texts("a", "b")
    assert {target for _, target in looks} <= {*views("a", "b")}
    assert writers.told() == {"a": 0, "b": 0}
    assert folder.names() == [NAME_1]
    assert os.listdir(tmp_path / "moorage.dev") == [CAMERA_1]


def test_a_process_that_cannot_write_never_removes_the_file_of_one_that_can(
    tmp_path: Path,
) -> None:
    folder = Folder(tmp_path)
    writers = Writers(tmp_path, a=give_often, b=fail_to_give)

    looks = [folder.read(NAME_1) for _ in writers.meanwhile()]

    given = [text for text in looks if text is not None]
    assert set(given) <= texts("a")
    assert looks == [None] * (len(looks) - len(given)) + given
    assert folder.read(NAME_1) in texts("a")
    assert writers.told() == {"a": 0, "b": ROUNDS // 3}


def fill(disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (disk / "filler").write_bytes(bytes(64 * 1024))


async def test_what_a_process_wrote_or_found_itself_goes_if_it_cannot_put_it_right(
    tiny: Path,
) -> None:
    """Whoever is started with it would get what is at its old place."""
    for start in (False, True):
        files = instance_files(tiny)
        await files.write([at("/dev/a")])
        fill(tiny)
        files = instance_files(tiny) if start else files

        await files.write([at("/dev/b")])

        assert Folder(tiny).read(NAME_1) is None
        (tiny / "filler").unlink()


async def test_a_file_of_another_process_goes_if_it_leads_to_another_device(tiny: Path) -> None:
    files, other = instance_files(tiny), instance_files(tiny)
    await other.write([at("/dev/a")])
    fill(tiny)

    await files.write([at("/dev/b")])
    assert Folder(tiny).read(NAME_1) == content(at("/dev/a"))
    thief = a_camera(CAMERA_2, device_specs=(DeviceSpec("/dev/a", "/dev/a"),))
    await files.follow({CAMERA_1: False}, DeviceLocator([at("/dev/b"), thief]))

    assert Folder(tiny).read(NAME_1) is None


async def test_what_another_process_gave_of_an_instance_not_heard_of_stays(tmp_path: Path) -> None:
    late, early = instance_files(tmp_path), instance_files(tmp_path)
    await early.write([at("/dev/a")])

    await late.keep([CAMERA_2])
    assert Folder(tmp_path).read(NAME_1) == content(at("/dev/a"))
    assert os.readlink(tmp_path / LINK) == "/dev/a"
    await late.keep([CAMERA_1, CAMERA_2])
    await late.keep([CAMERA_2])

    assert Folder(tmp_path).names() == []
    assert os.listdir(tmp_path / "moorage.dev") == []


async def test_a_file_that_another_process_replaced_is_put_right_at_the_next_look(
    tmp_path: Path,
) -> None:
    ours, theirs = instance_files(tmp_path), instance_files(tmp_path)
    await ours.write([at("/dev/a")])
    await theirs.write([at("/dev/b")])

    await ours.follow({CAMERA_1: False}, DeviceLocator([at("/dev/a")]))

    assert Folder(tmp_path).read(NAME_1) == content(at("/dev/a"))


def at(path: str) -> Instance:
    return a_camera(device_specs=(DeviceSpec(path, path),), properties={"NODE": path})


async def test_the_file_of_a_device_that_adds_nothing_any_more_goes(tmp_path: Path) -> None:
    """What the kubelet was answered before may still name it."""
    files = instance_files(tmp_path)
    await files.write([at("/dev/a")])

    await files.write([a_camera(device_specs=(), properties={})])

    assert Folder(tmp_path).names() == []
