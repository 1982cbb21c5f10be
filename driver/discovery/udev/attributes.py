"""Attributes by which claims select a device: its udev properties, and its place on the buses.

Kubernetes' own attributes come first, then the most requested ones, then the rest by name. Omitted
are properties that change whenever a device is plugged in, those that its environment has already,
and values that are too long for an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from driver.devices import NUMA_NODE
from driver.discovery.udev.passthrough import pci_address
from driver.discovery.udev.rules import DeviceView, self_and_ancestors
from driver.names import VALUE_LIMIT

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
PCI_BUS_ID = "resource.kubernetes.io/pciBusID"

_FIRST = (
    "ID_VENDOR",
    "ID_MODEL",
    "ID_SERIAL_SHORT",
    "ID_VENDOR_ID",
    "ID_MODEL_ID",
    "ID_BUS",
    "ID_PATH",
    "SUBSYSTEM",
    "DEVTYPE",
    "DRIVER",
    "TAGS",
    "DEVLINKS",
)
_LEFT_OUT = frozenset(
    {
        "ACTION",
        "CURRENT_TAGS",
        "DEVNAME",
        "DEVNUM",
        "DEVPATH",
        "DISKSEQ",
        "IFINDEX",
        "MAJOR",
        "MINOR",
        "SEQNUM",
        "SYNTH_UUID",
        "USEC_INITIALIZED",
    }
)
_MEASURED = ("POWER_SUPPLY_",)
"""Prefixes of properties that are measurements, and change all the time."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_ROOT = re.compile(r"/(pci[0-9a-f]{4,}:[0-9a-f]{2})/")
_BUS_ID = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_USB_ATTRIBUTES = {
    "ID_VENDOR_ID": "idVendor",
    "ID_MODEL_ID": "idProduct",
    "ID_SERIAL_SHORT": "serial",
}
"""Files of the kernel that replace a property if no udevd runs."""


def attributes_of(device: DeviceView) -> dict[str, str]:
    """The attributes of a device, the most important first."""
    values = {**_of_usb(device), **device.properties}
    fitting = {name: value for name, value in values.items() if _fits(name, value)}
    names = [*(name for name in _FIRST if name in fitting), *sorted(fitting.keys() - set(_FIRST))]
    return {**_standard(device), **{name: fitting[name] for name in names}}


def _standard(device: DeviceView) -> Mapping[str, str]:
    standard, path = {}, device.path
    if root := _ROOT.search(path):
        standard[PCIE_ROOT] = root[1]
    address = pci_address(path)
    if address is not None and _BUS_ID.fullmatch(address):
        standard[PCI_BUS_ID] = address
    if (node := _numa_node(device)) is not None:
        standard[NUMA_NODE] = node
    return standard


def _numa_node(device: DeviceView) -> str | None:
    """The NUMA node of the device, else of the nearest bus above it; -1 means none."""
    if device.path.startswith("/devices/virtual/"):
        return None
    values = (each.attribute("numa_node") for each in self_and_ancestors(device))
    known = next((text.strip() for text in values if text is not None), "")
    return known if known.isdecimal() else None


def _of_usb(device: DeviceView) -> Mapping[str, str]:
    if "/usb" not in device.path:
        return {}
    for each in self_and_ancestors(device):
        if each.attribute("idVendor") is not None:
            values = {name: each.attribute(file) for name, file in _USB_ATTRIBUTES.items()}
            return {name: value for name, value in values.items() if value}
    return {}


def _fits(name: str, value: str) -> bool:
    if name in _LEFT_OUT or name.startswith(_MEASURED) or not _NAME.fullmatch(name):
        return False
    try:
        return len(value.encode()) <= VALUE_LIMIT
    except UnicodeEncodeError:  # bytes that are not UTF-8
        return False
