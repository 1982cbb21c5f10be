"""What virtual machines are told; the names are those of Akri's tests."""

from __future__ import annotations

import pytest

from driver.devices import DeviceSpec
from driver.discovery.udev.passthrough import Passthrough, passthrough_of, pci_address

PCI = "/devices/pci0000:00/0000:00:01.0/0000:65:00.0"
USB = "/devices/pci0000:00/0000:00:14.0/usb1/1-1"


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("akri.sh/udev-usb-keyboard", "AKRI_SH_UDEV-USB-KEYBOARD"),
        ("example.com/my-device", "EXAMPLE_COM_MY-DEVICE"),
    ],
)
def test_names_are_akris(resource: str, name: str) -> None:
    asked = Passthrough(resource)

    assert asked.usb("/dev/bus/usb/001/017") == {f"USB_RESOURCE_{name}": "1:17"}
    assert asked.pci(PCI) == {f"PCI_RESOURCE_{name}": "0000:65:00.0"}


@pytest.mark.parametrize("node", ["/dev/video0", "/dev/bus/usb/x/1", "/dev/bus/usb", "/dev/sda"])
def test_a_node_that_is_no_usb_devices_says_nothing(node: str) -> None:
    assert Passthrough("a/b").usb(node) == {}


def test_what_hangs_on_a_usb_controller_is_not_the_controller() -> None:
    assert pci_address(USB) is None
    assert Passthrough("a/b").pci(USB) == {}


def test_nothing_is_told_of_what_was_not_asked_for() -> None:
    asked = Passthrough(vfio=True)

    assert (asked.usb("/dev/bus/usb/001/017"), asked.pci(PCI), asked.specs(PCI, "7")) == (
        {},
        {},
        (),
    )


def test_a_vfio_group_comes_with_the_device() -> None:
    assert Passthrough("a/b", vfio=True).specs(PCI, "7") == (
        DeviceSpec("/dev/vfio/7", "/dev/vfio/7", "rwm"),
        DeviceSpec("/dev/vfio/vfio", "/dev/vfio/vfio", "rwm"),
    )


def test_without_a_group_or_for_usb_there_are_no_vfio_nodes() -> None:
    asked = Passthrough("a/b", vfio=True)

    assert (asked.specs(PCI, None), asked.specs(USB, "7")) == ((), ())


@pytest.mark.parametrize(
    ("properties", "asked"),
    [
        ({}, Passthrough()),
        ({"devicePluginResourceName": b" a.b/c \n"}, Passthrough("a.b/c")),
        ({"devicePluginResourceName": b"", "vfioPassthrough": b"no"}, Passthrough()),
        ({"devicePluginResourceName": None, "vfioPassthrough": b" True "}, Passthrough(vfio=True)),
        ({"devicePluginResourceName": b"a=b"}, Passthrough()),
        ({"devicePluginResourceName": b"a\0b"}, Passthrough()),
        ({"devicePluginResourceName": b"\xff", "vfioPassthrough": b"\xff"}, Passthrough()),
    ],
)
def test_it_is_asked_for_by_discovery_properties(
    properties: dict[str, bytes | None], asked: Passthrough
) -> None:
    assert passthrough_of(properties) == asked
