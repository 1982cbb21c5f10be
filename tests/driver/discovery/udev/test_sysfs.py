"""Devices as sysfs shows them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import pyudev

from driver.discovery.udev.sysfs import Listed, device_at, listed_devices
from tests.driver.discovery.udev.loops import Loops


def a_sysfs(root: Path) -> Path:
    for folder in ("class/block", "class/net", "bus/usb/devices", "bus/usb/drivers", "devices/x"):
        (root / folder).mkdir(parents=True)
    return root


def test_devices_are_listed_with_their_subsystem(tmp_path: Path) -> None:
    sysfs = a_sysfs(tmp_path)
    (sysfs / "class/block/cciss!c0d0").symlink_to("../../devices/x/block/cciss!c0d0")
    (sysfs / "bus/usb/devices/1-1").symlink_to("../../../devices/x/usb1/1-1")
    (sysfs / "bus/usb/drivers/hub").symlink_to("../../../devices/x/usb1/1-1")

    assert list(listed_devices(sysfs)) == [
        Listed("/devices/x/block/cciss!c0d0", "block"),
        Listed("/devices/x/usb1/1-1", "usb"),
    ]


def test_what_is_no_device_is_not_listed(tmp_path: Path) -> None:
    sysfs = a_sysfs(tmp_path)
    (sysfs / "class/net/bonding_masters").write_text("")
    (sysfs / "class/net/folder").mkdir()
    (sysfs / "class/file").write_text("")

    assert list(listed_devices(sysfs)) == []


def test_names_that_are_no_text_are_listed(tmp_path: Path) -> None:
    sysfs = a_sysfs(tmp_path)
    os.symlink(b"../../devices/x/net/\xff", os.fsencode(sysfs / "class/net") + b"/\xff")

    assert list(listed_devices(sysfs)) == [Listed("/devices/x/net/\udcff", "net")]


@pytest.mark.parametrize("missing", ["class", "bus"])
def test_a_missing_sysfs_is_an_error_and_not_empty(tmp_path: Path, missing: str) -> None:
    (tmp_path / ("bus" if missing == "class" else "class")).mkdir()

    with pytest.raises(FileNotFoundError, match=missing):
        list(listed_devices(tmp_path))


def test_a_device_is_read_when_asked(loops: Loops) -> None:
    context = pyudev.Context()
    assert device_at(loops.path(0), context) is None

    loops.plug(0)
    device = device_at(loops.path(0), context)

    assert device is not None
    assert (device.path, device.sys_name) == (loops.path(0), loops.name(0))
    assert (device.subsystem, device.driver, device.parent) == ("block", None, None)
    assert device.node == f"/dev/{loops.name(0)}"
    assert Path(device.node).is_block_device()
    assert device.attribute("size") == "0"
    assert device.attribute("queue/rotational") in ("0", "1")
    assert device.attribute("absent") is None
    assert device.attribute("queue") is None
    assert device.property("DEVTYPE") == "disk"
    assert device.property("ABSENT") is None
    assert device.properties["DEVTYPE"] == "disk"
    assert (device.link("bdi"), device.link("absent")) == (f"7:{loops.first}", None)
    assert Listed(loops.path(0), "block") in set(listed_devices())


def test_a_device_is_where_links_lead(loops: Loops, tmp_path: Path) -> None:
    loops.plug(0)
    loops.plug(1)
    device = device_at(loops.path(0), pyudev.Context())
    here, elsewhere, nowhere = (tmp_path / name for name in ("here", "elsewhere", "nowhere"))
    here.symlink_to(f"/dev/{loops.name(0)}")
    elsewhere.symlink_to(f"/dev/{loops.name(1)}")
    nowhere.symlink_to(f"/dev/{loops.name(2)}")

    assert device is not None
    assert device.node is not None
    assert device.is_at(str(here))
    assert device.is_at(device.node)
    assert not device.is_at(str(elsewhere))
    assert not device.is_at(str(nowhere))
    loops.unplug(0)
    assert not device.is_at(device.node)


def test_a_device_that_is_gone_answers_without_an_error(loops: Loops) -> None:
    loops.plug(0)
    device = device_at(loops.path(0), pyudev.Context())
    loops.unplug(0)

    assert device is not None
    assert device.attribute("size") is None
    assert device.property("ID_SERIAL") is None
    assert device.link("bdi") is None
    assert "ID_SERIAL" not in device.properties
    assert device.path == loops.path(0)
    assert device.is_settled in (True, False)


@pytest.mark.parametrize(
    "path", ["/module/loop", "/bus/pci/drivers", "/devices", "/devices/virtual/net/lo/queues/rx-0"]
)
def test_drivers_modules_and_queues_are_no_devices(path: str) -> None:
    assert device_at(path, pyudev.Context()) is None


def test_bytes_that_are_no_text_do_no_harm() -> None:
    context = pyudev.Context()

    assert device_at("/devices/\udcff", context) is None
    assert device_at("/", context) is None
