"""What is there only as long as a device is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driver.discovery.udev.guards import guards_of
from driver.discovery.udev.identity import IDENTITIES
from tests.driver.discovery.udev.views import FakeDevice

BY_SEQUENCE = "/dev/disk/by-diskseq/9"
PLUGGED = "/dev/bus/usb/001/007"

HUB = FakeDevice(
    path="/devices/usb1", subsystem="usb", node="/dev/bus/usb/001/001", attributes={"idVendor": "1"}
)
STICK = FakeDevice(
    path="/devices/usb1/1-1",
    subsystem="usb",
    node=PLUGGED,
    parent=HUB,
    attributes={"idVendor": "2"},
)
INTERFACE = FakeDevice(path="/devices/usb1/1-1/1-1:1.0", subsystem="usb", parent=STICK)
VIDEO = FakeDevice(
    path="/devices/usb1/1-1/1-1:1.0/video4linux/video0", node="/dev/video0", parent=INTERFACE
)
DISK = FakeDevice(
    path="/devices/virtual/block/loop7",
    node="/dev/loop7",
    attributes={"diskseq": "9"},
    aliases=(BY_SEQUENCE,),
)
PART = FakeDevice(path="/devices/virtual/block/loop7/loop7p1", node="/dev/loop7p1", parent=DISK)


@pytest.mark.parametrize("disk", [DISK, PART])
def test_a_disk_and_its_parts_last_as_long_as_the_link_of_their_medium(disk: FakeDevice) -> None:
    assert guards_of(disk, "serial") == (BY_SEQUENCE,)


def test_a_function_of_a_usb_device_lasts_as_long_as_that_is_plugged() -> None:
    assert guards_of(VIDEO, "by-id") == (PLUGGED,)


def test_a_usb_disk_lasts_as_long_as_both() -> None:
    assert guards_of(replace(DISK, parent=INTERFACE), "serial") == (BY_SEQUENCE, PLUGGED)


def test_a_usb_device_itself_is_its_own_guard() -> None:
    assert guards_of(STICK, "serial") == ()


@pytest.mark.parametrize(
    "device",
    [
        replace(DISK, aliases=()),
        replace(DISK, attributes={"diskseq": "10"}),
        replace(DISK, attributes={}),
        FakeDevice(path="/devices/platform/gpio", node="/dev/gpiochip0"),
    ],
)
def test_a_path_that_is_not_there_or_leads_elsewhere_is_none(device: FakeDevice) -> None:
    assert guards_of(device, "serial") == ()


@pytest.mark.parametrize("identity", IDENTITIES)
def test_what_is_known_by_its_place_may_be_any_device(identity: str) -> None:
    assert bool(guards_of(DISK, identity)) == (identity in ("serial", "by-id"))
