"""Files are replaced whole or not at all, and one process is inside a lock at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from driver.plumbing.disk import ABANDONED_SECONDS, Folder, boot_id
from tests.driver.plumbing.writers import (
    ROUNDS,
    Writers,
    contents,
    fail_to_write,
    write_often,
)


def test_file_is_written_read_replaced_and_removed(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a" / "b")

    assert (folder.names(), folder.read("x"), folder.signature("x")) == ([], None, None)
    folder.write("x", b"1")
    first = folder.signature("x")
    folder.write("x", b"2")

    assert (folder.names(), folder.read("x")) == (["x"], b"2")
    assert folder.signature("x") != first
    folder.remove("x")
    folder.remove("x")
    assert folder.names() == []


def test_no_look_at_a_file_that_two_processes_write_is_torn(tmp_path: Path) -> None:
    folder, writers = Folder(tmp_path), Writers(tmp_path, a=write_often, b=write_often)

    looks = {folder.read("x") for _ in writers.meanwhile()}

    assert looks <= {None, contents("a"), contents("b")}
    assert folder.read("x") is not None
    assert writers.told() == {"a": 0, "b": 0}
    assert folder.names() == ["x"]


def test_a_process_that_cannot_write_leaves_the_file_of_one_that_can(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("x", contents("a"))
    writers = Writers(tmp_path, a=write_often, b=fail_to_write)

    looks = {folder.read("x") for _ in writers.meanwhile()}

    assert looks == {contents("a")}
    assert writers.told() == {"a": 0, "b": ROUNDS}
    assert folder.names() == ["x"]


def test_what_killed_writers_left_is_removed_with_the_first_write(tmp_path: Path) -> None:
    left = [".moorage.dev-0123456789abcdef.tmp", ".akri.sh-akri-onvif-8120fe.json.tmp"]
    others = [".moorage.dev-fedcba9876543210.tmp", ".vendor.json.tmp", "moorage.dev-1.tmp"]
    for name in (*left, *others):
        (tmp_path / name).write_bytes(b"half")
    for name in (*left, *others[1:]):
        os.utime(tmp_path / name, (0, time.time() - 2 * ABANDONED_SECONDS))

    Folder(tmp_path).write("x", b"1")

    assert Folder(tmp_path).names() == sorted([*others, "x"])


def test_names_of_any_length_can_be_written(tmp_path: Path) -> None:
    name = "x" * 255

    Folder(tmp_path).write(name, b"1")

    assert Folder(tmp_path).names() == [name]


def test_file_gets_another_name_whoever_has_that(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("x", b"new")
    folder.write("y", b"old")

    folder.rename("x", "y")

    assert (folder.names(), folder.read("y")) == (["y"], b"new")
    with pytest.raises(FileNotFoundError):
        folder.rename("x", "y")


def test_full_disk_leaves_the_old_file_and_no_other(tiny: Path) -> None:
    folder = Folder(tiny)
    folder.write("x", b"old")

    with pytest.raises(OSError, match="No space left"):
        folder.write("x", bytes(64 * 1024))

    assert folder.read("x") == b"old"
    assert folder.names() == ["x"]
    folder.write("x", b"new")
    assert folder.read("x") == b"new"


def test_files_are_for_root_only(tmp_path: Path) -> None:
    Folder(tmp_path).write("x", b"secret")

    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


def test_boot_has_an_id() -> None:
    assert boot_id()
    assert boot_id() == boot_id()


def test_a_folder_says_why_nothing_can_be_written_in_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "cdi"
    folder = Folder(path)

    assert (folder.problem(), folder.problem(thoroughly=True), folder.names()) == ("", "", [])
    (tmp_path / "file").touch()
    assert "Not a directory" in Folder(tmp_path / "file" / "cdi").problem()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        path.rmdir()  # as of a mount whose folder was removed on the node
        mounted = Folder(Path(f"/proc/self/fd/{descriptor}"))
        assert mounted.problem().endswith(" was removed on the node")
        with pytest.raises(FileNotFoundError):
            mounted.write("x", b"")
    finally:
        os.close(descriptor)
    assert folder.problem() == ""
    assert path.is_dir()


def test_a_full_disk_is_told_by_a_thorough_look(tiny: Path) -> None:
    folder = Folder(tiny)
    with pytest.raises(OSError, match="No space left"):
        folder.write("x", bytes(32 * 1024))
    (tiny / "much").write_bytes(bytes(12 * 1024))

    assert folder.problem() == ""
    assert folder.problem(thoroughly=True).endswith(": No space left on device")
    (tiny / "much").unlink()
    assert folder.problem(thoroughly=True) == ""
    assert folder.names() == []
