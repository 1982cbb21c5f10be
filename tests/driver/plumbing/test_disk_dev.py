"""The host's `/dev`, seen at another path as in the driver's pod."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from driver.plumbing.device_nodes import FileKind, PathTarget
from driver.plumbing.disk_dev import HostDev, own_dev


@pytest.fixture(name="dev")
def _dev(tmp_path: Path) -> HostDev:
    """A `/dev` with a serial adapter, and links as udevd makes them."""
    folder = tmp_path / "host" / "dev"
    (folder / "serial" / "by-id").mkdir(parents=True)
    (folder / "bus").mkdir()
    _node(folder / "ttyUSB0")
    (folder / "serial" / "by-id" / "usb-Acme-if00").symlink_to("../../ttyUSB0")
    (folder / "modem").symlink_to("/dev/serial/by-id/usb-Acme-if00")
    (folder / "log").symlink_to("/run/nowhere/dev-log")
    (folder / "loop").symlink_to("loop")
    (folder / "gone").symlink_to("ttyUSB7")
    (folder / "up").symlink_to("../../../../../../etc/passwd")
    (folder / "file").write_text("")
    return HostDev(folder)


def _node(path: Path) -> None:
    """A device node; where those may not be made, a link to one would not do either."""
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.fail("device nodes cannot be made here; run the tests as root")


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("/dev/ttyUSB0", "/dev/ttyUSB0"),
        ("/dev/serial/by-id/usb-Acme-if00", "/dev/ttyUSB0"),
        ("/dev/modem", "/dev/ttyUSB0"),
        ("/dev/log", "/run/nowhere/dev-log"),
        ("/dev/gone", "/dev/ttyUSB7"),
        ("/dev/up", "/etc/passwd"),
        ("/dev/loop", "/dev/loop"),
        ("/dev/none", "/dev/none"),
        ("/dev/a\0b", "/dev/a\0b"),
    ],
)
def test_links_lead_where_the_host_has_them(dev: HostDev, path: str, leads: str) -> None:
    assert dev.resolve(path) == leads


def test_only_device_nodes_are_some(dev: HostDev) -> None:
    paths = ("/dev/modem", "/dev/bus", "/dev/file", "/dev/gone", "/dev/none", "/dev/loop")

    looks = dev.look([*paths, "/dev/a\0b", "/dev/log"])

    assert looks == {
        "/dev/modem": PathTarget("/dev/ttyUSB0", FileKind.NODE),
        "/dev/bus": PathTarget("/dev/bus", FileKind.OTHER),
        "/dev/file": PathTarget("/dev/file", FileKind.OTHER),
        "/dev/gone": PathTarget("/dev/ttyUSB7", FileKind.MISSING),
        "/dev/none": PathTarget("/dev/none", FileKind.MISSING),
        "/dev/loop": PathTarget(None, FileKind.MISSING),
        "/dev/a\0b": PathTarget(None, FileKind.UNKNOWN),
        "/dev/log": PathTarget("/run/nowhere/dev-log", FileKind.UNKNOWN),
    }


def test_what_the_process_does_not_see_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    node = tmp_path / "node"
    _node(node)
    (tmp_path / "link").symlink_to(node)
    nowhere = HostDev()

    paths = ("/dev/none", str(tmp_path / "none"), str(tmp_path / "file"), str(tmp_path / "link"))
    assert [(look.target, look.kind) for look in nowhere.look(paths).values()] == [
        (None, FileKind.UNKNOWN),
        (None, FileKind.UNKNOWN),
        (str(tmp_path / "file"), FileKind.OTHER),
        (str(node), FileKind.NODE),
    ]
    assert nowhere.resolve(str(tmp_path / "link")) == str(node)
    assert nowhere.here("/dev/null") == "/dev/null"


@pytest.mark.parametrize(
    ("mounts", "found"),
    [
        ("24 30 0:6 / /dev rw,nosuid shared:2 - devtmpfs udev rw,size=1k\n", Path("/dev")),
        ("24 30 0:6 / /dev rw,nosuid - tmpfs tmpfs rw\n", None),
        ("24 30 0:6 / /dev/shm rw - devtmpfs udev rw\n", None),
        ("1 1 0:6 / /dev rw - tmpfs x rw\n2 1 0:6 / /dev rw - devtmpfs udev rw\n", Path("/dev")),
        ("", None),
        ("nonsense\n", None),
    ],
)
def test_the_kernels_own_file_system_is_the_hosts(
    tmp_path: Path, mounts: str, found: Path | None
) -> None:
    (tmp_path / "mountinfo").write_text(mounts)

    assert own_dev(tmp_path / "mountinfo") == found
    assert own_dev(tmp_path / "none") is None
