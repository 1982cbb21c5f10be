"""Guards: paths of the host that are there only as long as this very device is.

The container runtime starts no container that such a path was promised to and that lacks it. So a
container that is started anew while no driver runs gets the device that it had, or is not started.

    /dev/disk/by-diskseq/9   a disk, until it is pulled or gets another medium; udevd's link, made
                             of the kernel's count of media
    /dev/bus/usb/001/007     a USB device, until it is pulled; the kernel counts on at each plug

Of a device that is known by its place there is none: there it is whatever is plugged in.
"""

from __future__ import annotations

from collections.abc import Iterator

from driver.discovery.udev.rules import DeviceView, self_and_ancestors

GUARDED_IDENTITIES = frozenset({"serial", "by-id"})

_USB_NODES = "/dev/bus/usb/"


def guards_of(device: DeviceView, identity: str) -> tuple[str, ...]:
    """The guards of a device, if its Configuration knows it by what it is.

    Args:
        device: As it is now.
        identity: One of `IDENTITIES`.
    """
    return tuple(_guards(device)) if identity in GUARDED_IDENTITIES else ()


def _guards(device: DeviceView) -> Iterator[str]:
    for each in self_and_ancestors(device):
        if number := (each.attribute("diskseq") or "").strip():
            link = f"/dev/disk/by-diskseq/{number}"
            if each.is_at(link):
                yield link
        node = each.node or ""
        if node.startswith(_USB_NODES):  # The hub above it stays when it is pulled.
            if node != device.node and each.is_at(node):
                yield node
            return
