"""What claims can select a udev device by."""

from __future__ import annotations

import pytest

from driver.discovery.udev.attributes import attributes_of
from tests.driver.discovery.udev.views import FakeDevice

NVME = "/devices/pci0000:00/0000:00:01.0/0000:65:00.0/nvme/nvme0/nvme0n1"


def test_properties_keep_their_names_and_the_important_come_first() -> None:
    device = FakeDevice(properties={"A": "1", "SUBSYSTEM": "block", "Z": "", "ID_VENDOR": "ACME"})

    assert list(attributes_of(device).items()) == [
        ("ID_VENDOR", "ACME"),
        ("SUBSYSTEM", "block"),
        ("A", "1"),
        ("Z", ""),
    ]


def test_what_changes_with_each_plug_or_does_not_fit_is_left_out() -> None:
    device = FakeDevice(
        properties={
            "USEC_INITIALIZED": "12345",
            "MAJOR": "7",
            "DEVNAME": "/dev/loop7",
            "POWER_SUPPLY_ENERGY_NOW": "3",
            ".HIDDEN": "1",
            "A" * 33: "1",
            "LONG": "é" * 33,
            "ODD": "\udcff",
        }
    )

    assert attributes_of(device) == {}


def test_kubernetes_own_attributes_come_first() -> None:
    device = FakeDevice(path=NVME, properties={"ID_VENDOR": "ACME"})

    assert list(attributes_of(device).items()) == [
        ("resource.kubernetes.io/pcieRoot", "pci0000:00"),
        ("resource.kubernetes.io/pciBusID", "0000:65:00.0"),
        ("ID_VENDOR", "ACME"),
    ]


def test_the_numa_node_is_that_of_the_first_bus_that_knows_one() -> None:
    bridge = FakeDevice(path="/devices/pci0000:00", attributes={"numa_node": "0\n"})
    device = FakeDevice(
        path="/devices/pci0000:00/x", attributes={"numa_node": "1\n"}, parent=bridge
    )
    part = FakeDevice(path="/devices/pci0000:00/x/y", parent=device)

    assert attributes_of(part)["resource.kubernetes.io/numaNode"] == "1"


@pytest.mark.parametrize("told", ["-1\n", "", "near"])
def test_a_device_without_a_numa_node_tells_of_none(told: str) -> None:
    device = FakeDevice(path="/devices/platform/x", attributes={"numa_node": told})

    assert attributes_of(device) == {}


def test_a_usb_device_has_a_root_and_is_no_pci_device() -> None:
    device = FakeDevice(path="/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/tty/ttyUSB0")

    assert attributes_of(device) == {"resource.kubernetes.io/pcieRoot": "pci0000:00"}


def test_what_only_the_kernel_knows_of_a_usb_device_bears_udevds_names() -> None:
    files = {"idVendor": "046d", "idProduct": "0825", "serial": "A1"}
    camera = FakeDevice(path="/devices/usb1/1-1", subsystem="usb", attributes=files)
    video = FakeDevice(
        path="/devices/usb1/1-1/video0", parent=camera, properties={"ID_MODEL_ID": "9999"}
    )

    assert attributes_of(video) == {
        "ID_SERIAL_SHORT": "A1",
        "ID_VENDOR_ID": "046d",
        "ID_MODEL_ID": "9999",
    }
